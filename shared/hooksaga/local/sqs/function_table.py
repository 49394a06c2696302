"""The functions of SQS mode on one machine: limits, triggers and environment variables."""

from collections.abc import Mapping
from dataclasses import dataclass

from hooksaga.aws.deployment import LOCAL, Environment
from hooksaga.local.sqs.runtime_api import FunctionSpec

MAX_PROCESSES = 4
"""Limit per function: this machine is smaller than AWS."""


@dataclass(frozen=True, slots=True)
class FunctionKind:
    """Limits of one function. `queues` trigger it; `scheduled`: the clock does too."""

    timeout_seconds: int
    visibility_seconds: int
    concurrency: int
    queues: tuple[str, ...] = ()
    scheduled: bool = False


def function_kinds(env: Environment) -> dict[str, FunctionKind]:
    def kind(name: str, *queues: str, scheduled: bool = False) -> FunctionKind:
        limits = env.functions[name]
        concurrency = min(MAX_PROCESSES, limits.concurrency)
        return FunctionKind(
            limits.timeout_seconds, env.visibility_seconds(name), concurrency, queues, scheduled
        )

    return {
        "ingest": kind("ingest"),
        "intake": kind("intake", "intake"),
        "subscriptions": kind("subscriptions"),
        "admin": kind("admin", scheduled=True),
        "console": kind("console"),
        "router": kind("router", "routing", scheduled=True),
        "orchestrator": kind("orchestrator", "orchestration", scheduled=True),
        "delivery": kind("delivery", "delivery", "delivery-slow"),
        "lease_cleaner": kind("lease_cleaner", scheduled=True),
        "health_monitor": kind("health_monitor", scheduled=True),
        "retention": kind("retention", scheduled=True),
        "migrate": kind("migrate"),
    }


FUNCTIONS = function_kinds(LOCAL)


def function_spec(name: str, kind: FunctionKind, environment: Mapping[str, str]) -> FunctionSpec:
    return FunctionSpec(
        f"hooksaga-{name}",
        f"functions.{name}.handler.handler",
        kind.timeout_seconds,
        environment,
        concurrency=kind.concurrency,
    )
