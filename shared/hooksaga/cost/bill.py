"""A month's bill, line by line, in US dollars."""

from dataclasses import dataclass, field, fields
from typing import Any

from hooksaga.aws.deployment import Environment, Nat
from hooksaga.cost.demand import GB, demand_of, stored_gb
from hooksaga.cost.sources import Inputs, Prices
from hooksaga.cost.work import (
    HEADER_BYTES,
    HOURS,
    LOG_BYTES_PER_INVOCATION,
    SECONDS,
    TICKING,
    TICKS_PER_FUNCTION,
    Load,
    Work,
    work_of,
)

MILLION = 1e6
SECRETS = 2
"""Number of secrets: the key of signing secrets, and the owner's password."""

CUSTOM_METRICS, FIREWALL_RULES = 31, 2
ALARMS = 56
"""Those of every deployment."""
NAT_DISK_GB = 8
COLD_STARTS_A_DAY = 500
"""New copies of functions that read a secret."""

TRACED_SHARE = 0.05
"""Share of the invocations of a traced function that are traced, beyond one per second, which all are."""

BYTES_PER_SQS_REQUEST = 2000
BYTES_PER_STATEMENT = 800
"""A statement, its parameters and its answer, without payloads."""

PAYLOADS_BETWEEN = 2
"""Times that a payload goes between functions and database: in with the event, out with each attempt."""

ANSWER_BYTES, ACCESS_LOG_BYTES = 600, 260
"""The API's answer to an event, and the line about it in the access log."""

REFUSED_FLOWS_GB = 0.1
"""Flow log of a month: only refused packets are logged, mostly those of scanners."""

COMPRESSED_LOGS = 0.15
"""Compression of stored logs."""


def _line(title: str) -> Any:
    return field(metadata={"title": title})


@dataclass(frozen=True, slots=True)
class Bill:
    """US dollars per month. The fields are the lines of the table."""

    functions: float = _line("Lambda")
    queues: float = _line("SQS")
    api: float = _line("API Gateway")
    database: float = _line("RDS instance")
    storage: float = _line("RDS storage and backups")
    way_out: float = _line("NAT and data sent")
    endpoints: float = _line("VPC endpoints")
    between_zones: float = _line("Data between zones")
    logs: float = _line("Logs of functions")
    access_logs: float = _line("Access and flow logs")
    watching: float = _line("Alarms and custom metrics")
    traces: float = _line("X-Ray traces")
    secrets: float = _line("Secrets Manager and KMS")
    firewall: float = _line("Web firewall")

    @property
    def total(self) -> float:
        return sum(getattr(self, one.name) for one in fields(self))


TITLES: dict[str, str] = {one.name: one.metadata["title"] for one in fields(Bill)}


def bill_of(load: Load, env: Environment, prices: Prices, inputs: Inputs) -> Bill:
    """Return the monthly bill of `env` under `load`. Raises KeyError for an instance class without a price."""
    work = work_of(load, env, inputs)
    return Bill(
        functions=_functions(work, env, prices),
        queues=work.sqs_requests / MILLION * prices.sqs_standard.million_requests,
        api=_api(load, prices),
        database=_database(env, prices),
        storage=_storage(load, env, prices, inputs),
        way_out=_egress(work, env, prices, inputs),
        endpoints=_endpoints(work, env, prices),
        between_zones=_between_zones(load, work, env, prices, inputs),
        logs=_logs(load, work, env, prices, inputs),
        access_logs=_access_logs(load, env, prices),
        watching=_watching(env, prices),
        traces=_traces(work, env, prices),
        secrets=_secrets(prices),
        firewall=_firewall(load, env, prices),
    )


def _functions(work: Work, env: Environment, prices: Prices) -> float:
    gb_seconds = sum(part.gb_seconds(env) for part in work.parts)
    requests = work.invocations / MILLION * prices.lambda_arm64.million_requests
    return gb_seconds * prices.lambda_arm64.gb_second + requests


def _api(load: Load, prices: Prices) -> float:
    answers = load.events * ANSWER_BYTES / GB * prices.network.internet_gb
    return load.events / MILLION * prices.api_gateway_rest.million_requests + answers


def _database(env: Environment, prices: Prices) -> float:
    rds, wanted = prices.rds_postgresql, env.database
    chosen = rds.instances[wanted.instance_class]
    hours = chosen.hour * (2 if wanted.multi_az else 1)
    return (hours + (chosen.vcpus * rds.proxy_vcpu_hour if wanted.proxy else 0)) * HOURS


def _storage(load: Load, env: Environment, prices: Prices, inputs: Inputs) -> float:
    """Cost of the stored data, at least the allocated size, and of backups beyond that size."""
    rds, wanted = prices.rds_postgresql, env.database
    stored = stored_gb(load, env, inputs)
    wal = demand_of(load, env, inputs).wal_bytes * wanted.backup_days * 24 * 3600 / GB
    size = max(wanted.storage_gb, stored)
    backups = max(0.0, stored + wal - size)
    return size * rds.gb_month_gp3 * (2 if wanted.multi_az else 1) + backups * rds.gb_month_backup


def _sent_gb(work: Work, inputs: Inputs) -> float:
    return work.attempts * (inputs.payload_bytes + HEADER_BYTES) / GB


def _egress(work: Work, env: Environment, prices: Prices, inputs: Inputs) -> float:
    network, sent = prices.network, _sent_gb(work, inputs)
    if env.nat is Nat.GATEWAY:
        fixed, per_gb = env.nat_zones * network.nat_gateway_hour * HOURS, network.nat_gateway_gb
    else:
        fixed, per_gb = network.nat_instance_hour * HOURS + NAT_DISK_GB * network.disk_gb_month, 0.0
    return fixed + env.nat_zones * network.public_address_hour * HOURS + sent * (per_gb + network.internet_gb)


def _endpoints(work: Work, env: Environment, prices: Prices) -> float:
    hours = 2 * env.endpoint_zones * HOURS * prices.network.endpoint_zone_hour
    return hours + work.sends * BYTES_PER_SQS_REQUEST / GB * prices.network.endpoint_gb


def _between_zones(load: Load, work: Work, env: Environment, prices: Prices, inputs: Inputs) -> float:
    """Cost of what goes to the database, the endpoints and the NAT from functions in another zone than theirs."""
    payloads = load.events + (PAYLOADS_BETWEEN - 1) * work.attempts
    statements = max(load.events, work.attempts) * inputs.statements
    database = (payloads * inputs.payload_bytes + statements * BYTES_PER_STATEMENT) / GB
    away = 1 - 1 / env.zones
    without_endpoint = 1 - env.endpoint_zones / env.zones
    calls = work.sends * BYTES_PER_SQS_REQUEST / GB
    crossing = (database + _sent_gb(work, inputs)) * away + calls * without_endpoint
    return crossing * prices.network.between_zones_gb


def _logs(load: Load, work: Work, env: Environment, prices: Prices, inputs: Inputs) -> float:
    lines = demand_of(load, env, inputs).log_bytes * SECONDS
    return _log_price((lines + work.invocations * LOG_BYTES_PER_INVOCATION) / GB, env, prices)


def _log_price(taken_gb: float, env: Environment, prices: Prices) -> float:
    kept = taken_gb * COMPRESSED_LOGS * env.log_days / 30
    return taken_gb * prices.cloudwatch.log_gb + kept * prices.cloudwatch.log_gb_month


def _access_logs(load: Load, env: Environment, prices: Prices) -> float:
    requests_gb = load.events * ACCESS_LOG_BYTES / GB if env.api.access_log else 0.0
    return _log_price(requests_gb + REFUSED_FLOWS_GB, env, prices)


def alarms_of(env: Environment) -> int:
    """Return the number of alarms."""
    of_nat = 2 * env.nat_zones if env.nat is Nat.GATEWAY else 1
    of_credits = env.database.instance_class.startswith("t")
    return ALARMS + of_nat + of_credits + (FIREWALL_RULES if env.api.web_firewall else 0)


def _watching(env: Environment, prices: Prices) -> float:
    watch = prices.cloudwatch
    return alarms_of(env) * watch.alarm_month + CUSTOM_METRICS * watch.metric_month + watch.dashboard_month


def _traces(work: Work, env: Environment, prices: Prices) -> float:
    """Cost of the traces, at most: AWS samples the invocations of each function by itself."""
    if not env.tracing:
        return 0.0
    events = sum(_traced(part.invocations) for part in (work.ingest, *work.steps))
    return (events + TICKS_PER_FUNCTION * len(TICKING)) / MILLION * prices.cloudwatch.million_traces


def _traced(invocations: float) -> float:
    return min(invocations, SECONDS + TRACED_SHARE * invocations)


def _secrets(prices: Prices) -> float:
    reads = COLD_STARTS_A_DAY * HOURS / 24 / MILLION
    price = prices.secrets_manager
    return SECRETS * price.secret_month + reads * (price.million_requests + price.million_key_requests)


def _firewall(load: Load, env: Environment, prices: Prices) -> float:
    if not env.api.web_firewall:
        return 0.0
    fixed = prices.waf.acl_month + FIREWALL_RULES * prices.waf.rule_month
    return fixed + load.events / MILLION * prices.waf.million_requests
