"""A month's bill, line by line, in US dollars."""

from dataclasses import dataclass, fields

from hooksaga.aws.deployment import Environment, Nat
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

MILLION, GB = 1e6, 1e9
SECRETS = 2
"""Number of secrets: the key of signing secrets, and the owner's password."""

ALARMS, CUSTOM_METRICS, FIREWALL_RULES = 41, 31, 2
NAT_DISK_GB = 8
TRACED_SHARE = 0.05
"""Share of requests that are traced, beyond one per second, which all are."""

BYTES_PER_SQS_REQUEST = 2000
COMPRESSED_LOGS = 0.15
"""Compression of stored logs."""


@dataclass(frozen=True, slots=True)
class Bill:
    """US dollars per month. The fields are the lines of the table."""

    functions: float
    queues: float
    api: float
    database: float
    storage: float
    way_out: float
    endpoints: float
    logs: float
    watching: float
    secrets: float
    firewall: float

    @property
    def total(self) -> float:
        return sum(getattr(self, field.name) for field in fields(self))


TITLES = {
    "functions": "Lambda",
    "queues": "SQS",
    "api": "API Gateway",
    "database": "RDS instance",
    "storage": "RDS storage and backups",
    "way_out": "NAT and data sent",
    "endpoints": "VPC endpoints",
    "logs": "Logs",
    "watching": "Alarms, metrics, traces",
    "secrets": "Secrets Manager",
    "firewall": "Web firewall",
}


def bill_of(load: Load, env: Environment, prices: Prices, inputs: Inputs) -> Bill:
    """Return the monthly bill of `env` under `load`. Raises KeyError for an instance class without a price."""
    work = work_of(load, inputs)
    return Bill(
        functions=_functions(work, env, prices),
        queues=work.sqs_requests / MILLION * prices.sqs_standard.million_requests,
        api=load.events / MILLION * prices.api_gateway_rest.million_requests,
        database=_database(env, prices),
        storage=_storage(load, env, prices, inputs),
        way_out=_egress(work, env, prices, inputs),
        endpoints=_endpoints(work, env, prices),
        logs=_logs(load, work, env, prices, inputs),
        watching=_watching(load, prices),
        secrets=SECRETS * prices.secrets_manager.secret_month,
        firewall=_firewall(load, env, prices),
    )


def _functions(work: Work, env: Environment, prices: Prices) -> float:
    gb_seconds = sum(part.gb_seconds(env) for part in work.parts)
    requests = work.invocations / MILLION * prices.lambda_arm64.million_requests
    return gb_seconds * prices.lambda_arm64.gb_second + requests


def _database(env: Environment, prices: Prices) -> float:
    rds, wanted = prices.rds_postgresql, env.database
    instance = rds.instance_hour[wanted.instance_class] * (2 if wanted.multi_az else 1)
    proxy = rds.vcpus[wanted.instance_class] * rds.proxy_vcpu_hour if wanted.proxy else 0
    return (instance + proxy) * HOURS


def _storage(load: Load, env: Environment, prices: Prices, inputs: Inputs) -> float:
    """Cost of the stored data, at least the allocated size, and of backups beyond that size."""
    rds, wanted = prices.rds_postgresql, env.database
    stored, wal = (_made(load, inputs, name) / GB for name in ("stored", "wal"))
    size = max(wanted.storage_gb, stored * load.days_kept / 30)
    backups = max(0.0, stored * load.days_kept / 30 + wal * wanted.backup_days / 30 - size)
    return size * rds.gb_month_gp3 * (2 if wanted.multi_az else 1) + backups * rds.gb_month_backup


def _made(load: Load, inputs: Inputs, name: str) -> float:
    of_events: float = getattr(inputs.bytes_per_event, name) * load.events
    of_deliveries: float = getattr(inputs.bytes_per_delivery, name) * load.attempts()
    return of_events + of_deliveries


def _egress(work: Work, env: Environment, prices: Prices, inputs: Inputs) -> float:
    network = prices.network
    sent = work.attempts * (inputs.payload_bytes + HEADER_BYTES) / GB
    if env.nat is Nat.GATEWAY:
        fixed, per_gb = network.nat_gateway_hour * HOURS, network.nat_gateway_gb
    else:
        fixed, per_gb = network.nat_instance_hour * HOURS + NAT_DISK_GB * network.disk_gb_month, 0.0
    return fixed + network.public_address_hour * HOURS + sent * (per_gb + network.internet_gb)


def _endpoints(work: Work, env: Environment, prices: Prices) -> float:
    hours = 2 * env.endpoint_zones * HOURS * prices.network.endpoint_zone_hour
    return hours + work.sends * BYTES_PER_SQS_REQUEST / GB * prices.network.endpoint_gb


def _logs(load: Load, work: Work, env: Environment, prices: Prices, inputs: Inputs) -> float:
    taken = (_made(load, inputs, "logged") + work.invocations * LOG_BYTES_PER_INVOCATION) / GB
    kept = taken * COMPRESSED_LOGS * env.log_days / 30
    return taken * prices.cloudwatch.log_gb + kept * prices.cloudwatch.log_gb_month


def _watching(load: Load, prices: Prices) -> float:
    watch, ticks = prices.cloudwatch, TICKS_PER_FUNCTION * len(TICKING)
    traces = min(load.events, SECONDS + TRACED_SHARE * load.events) + ticks
    fixed = ALARMS * watch.alarm_month + CUSTOM_METRICS * watch.metric_month + watch.dashboard_month
    return fixed + traces / MILLION * watch.million_traces


def _firewall(load: Load, env: Environment, prices: Prices) -> float:
    if not env.api.web_firewall:
        return 0.0
    fixed = prices.waf.acl_month + FIREWALL_RULES * prices.waf.rule_month
    return fixed + load.events / MILLION * prices.waf.million_requests
