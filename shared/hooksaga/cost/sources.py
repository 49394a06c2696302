"""Input files of the cost estimate: list prices, and the measurements of bench/cost_inputs.py."""

import tomllib
from datetime import date
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveFloat, PositiveInt

FOLDER = Path(__file__).parent


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LambdaPrices(_Strict):
    gb_second: PositiveFloat
    million_requests: PositiveFloat


class RequestPrice(_Strict):
    million_requests: PositiveFloat


class DatabasePrices(_Strict):
    gb_month_gp3: PositiveFloat
    gb_month_backup: PositiveFloat
    proxy_vcpu_hour: PositiveFloat
    instance_hour: dict[str, PositiveFloat]
    vcpus: dict[str, PositiveInt]


class NetworkPrices(_Strict):
    nat_gateway_hour: PositiveFloat
    nat_gateway_gb: PositiveFloat
    nat_instance_hour: PositiveFloat
    disk_gb_month: PositiveFloat
    public_address_hour: PositiveFloat
    endpoint_zone_hour: PositiveFloat
    endpoint_gb: PositiveFloat
    internet_gb: PositiveFloat


class WatchPrices(_Strict):
    log_gb: PositiveFloat
    log_gb_month: PositiveFloat
    alarm_month: PositiveFloat
    metric_month: PositiveFloat
    dashboard_month: PositiveFloat
    million_traces: PositiveFloat


class SecretPrices(_Strict):
    secret_month: PositiveFloat


class FirewallPrices(_Strict):
    acl_month: PositiveFloat
    rule_month: PositiveFloat
    million_requests: PositiveFloat


class Prices(_Strict):
    """US dollars per hour, GB, month or million, as each name says."""

    region: str
    dated: date
    lambda_arm64: LambdaPrices
    sqs_standard: RequestPrice
    api_gateway_rest: RequestPrice
    rds_postgresql: DatabasePrices
    network: NetworkPrices
    cloudwatch: WatchPrices
    secrets_manager: SecretPrices
    waf: FirewallPrices
    no_charge: dict[str, float]


class Invocation(_Strict):
    """Measured cost of one invocation: wall time, processor time, calls to SQS."""

    ms: PositiveFloat
    cpu_ms: PositiveFloat
    sqs_calls: NonNegativeFloat


class Bytes(_Strict):
    wal: PositiveInt
    stored: PositiveInt
    logged: PositiveInt


class DatabaseCpu(_Strict):
    """Processor time of the database, in milliseconds: of an event, and of each of its deliveries."""

    event: NonNegativeFloat
    delivery: NonNegativeFloat


class Inputs(_Strict):
    """`invocations`: by batch size ("1" and "10"), then by step. `database_cpu_ms`: None in older measurements."""

    measured: date
    machine: str
    payload_bytes: PositiveInt
    events: PositiveInt
    invocations: dict[str, dict[str, Invocation]]
    ticks: dict[str, Invocation]
    bytes_per_event: Bytes
    bytes_per_delivery: Bytes
    database_cpu_ms: DatabaseCpu | None = None


@cache
def read_prices() -> Prices:
    return Prices.model_validate(tomllib.loads((FOLDER / "prices.toml").read_text(encoding="utf-8")))


@cache
def read_inputs() -> Inputs:
    return Inputs.model_validate_json((FOLDER / "inputs.json").read_bytes())
