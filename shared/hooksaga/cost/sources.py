"""Input files of the cost estimate: list prices, and the measurements of bench/cost_inputs.py."""

import tomllib
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveFloat, PositiveInt

FOLDER = Path(__file__).parent


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LambdaPrices(_Strict):
    gb_second: PositiveFloat
    million_requests: PositiveFloat


class RequestPrice(_Strict):
    million_requests: PositiveFloat


class Instance(_Strict):
    """An instance class. speed: of a processor, beside the one that was measured. all_day: share of the processors
    that may be busy all day. The last two: the connection to the storage."""

    hour: PositiveFloat
    vcpus: PositiveInt
    speed: PositiveFloat = 1.0
    memory_gib: PositiveInt
    all_day: Annotated[float, Field(gt=0, le=1)] = 1.0
    megabits: PositiveInt
    iops: PositiveInt


class DatabasePrices(_Strict):
    """instances: from the smallest to the largest."""

    gb_month_gp3: PositiveFloat
    gb_month_backup: PositiveFloat
    proxy_vcpu_hour: PositiveFloat
    instances: dict[str, Instance]


class AuroraPrices(_Strict):
    hour_over_rds: PositiveFloat
    gb_month: PositiveFloat


class NetworkPrices(_Strict):
    nat_gateway_hour: PositiveFloat
    nat_gateway_gb: PositiveFloat
    nat_instance_hour: PositiveFloat
    disk_gb_month: PositiveFloat
    public_address_hour: PositiveFloat
    endpoint_zone_hour: PositiveFloat
    endpoint_gb: PositiveFloat
    internet_gb: PositiveFloat
    between_zones_gb: PositiveFloat


class WatchPrices(_Strict):
    log_gb: PositiveFloat
    log_gb_month: PositiveFloat
    alarm_month: PositiveFloat
    metric_month: PositiveFloat
    dashboard_month: PositiveFloat
    million_traces: PositiveFloat


class SecretPrices(_Strict):
    secret_month: PositiveFloat
    million_requests: PositiveFloat
    million_key_requests: PositiveFloat


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
    aurora_io_optimized: AuroraPrices
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


class Parts(_Strict):
    """Bytes of an event, and of each of its deliveries."""

    event: NonNegativeFloat
    delivery: NonNegativeFloat


class Made(_Strict):
    """What one event or delivery makes. writes: flushes of the database's log, and pages of tables and indexes."""

    database_ms: NonNegativeFloat
    wal_bytes: NonNegativeFloat
    writes: NonNegativeFloat
    log_bytes: NonNegativeFloat


class MadeParts(_Strict):
    event: Made
    delivery: Made


class Inputs(_Strict):
    """`invocations` and `made`: by batch size. `statements`: of an event that comes alone, with one delivery."""

    measured: date
    machine: str
    payload_bytes: PositiveInt
    events: PositiveInt
    invocations: dict[str, dict[str, Invocation]]
    ticks: dict[str, Invocation]
    statements: PositiveFloat
    stored_bytes: Parts
    made: dict[str, MadeParts]


@cache
def read_prices() -> Prices:
    return Prices.model_validate(tomllib.loads((FOLDER / "prices.toml").read_text(encoding="utf-8")))


@cache
def read_inputs() -> Inputs:
    return Inputs.model_validate_json((FOLDER / "inputs.json").read_bytes())
