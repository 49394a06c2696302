"""The functions of SQS mode on one machine: the limits of the local deployment, what wakes them, what they see."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from infra.local.sqs.runtime_api import FunctionSpec
from infra.settings import LOCAL
from shared.runtime.settings import PREFIX, Settings

MOST_PROCESSES = 4
"""Of one function: this machine is smaller than AWS."""


@dataclass(frozen=True, slots=True)
class FunctionKind:
    """Limits of one function. `queues` wake it, and so does the clock if it is `scheduled`."""

    timeout_seconds: int
    visibility_seconds: int
    concurrency: int
    queues: tuple[str, ...] = ()
    scheduled: bool = False


def _kind(name: str, *queues: str, scheduled: bool = False) -> FunctionKind:
    limits = LOCAL.functions[name]
    concurrency = min(MOST_PROCESSES, limits.concurrency)
    return FunctionKind(
        limits.timeout_seconds, LOCAL.visibility_seconds(name), concurrency, queues, scheduled
    )


FUNCTIONS = {
    "ingest": _kind("ingest"),
    "subscriptions": _kind("subscriptions"),
    "admin": _kind("admin", scheduled=True),
    "console": _kind("console"),
    "router": _kind("router", "routing", scheduled=True),
    "orchestrator": _kind("orchestrator", "orchestration", scheduled=True),
    "delivery": _kind("delivery", "delivery", "delivery-retry"),
    "lease_cleaner": _kind("lease_cleaner", scheduled=True),
    "health_monitor": _kind("health_monitor", scheduled=True),
    "migrate": _kind("migrate"),
}
API_FUNCTIONS = ("ingest", "subscriptions", "admin", "console")


def function_spec(name: str, kind: FunctionKind, environment: Mapping[str, str]) -> FunctionSpec:
    """The function as it is deployed."""
    return FunctionSpec(
        f"hooksaga-{name}",
        f"functions.{name}.handler.handler",
        kind.timeout_seconds,
        environment,
        concurrency=kind.concurrency,
    )


def environment_of(settings: Settings, **overrides: str) -> dict[str, str]:
    """The variables that give a function these settings; defaults are left to be defaults."""
    given = settings.model_dump(exclude_unset=True, exclude_none=True, exclude={"api_key"})
    variables = {PREFIX + name.upper(): _text(value) for name, value in given.items()}
    if level := os.environ.get("HOOKSAGA_LOG_LEVEL"):
        variables["HOOKSAGA_LOG_LEVEL"] = level
    return {**variables, **overrides}


def _text(value: Any) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return str(value)
