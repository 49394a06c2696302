"""The functions of SQS mode on one machine: limits, triggers and environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from hooksaga.aws.deployment import LOCAL, Environment
from hooksaga.local.sqs.runtime_api import FunctionSpec
from hooksaga.runtime.settings import PREFIX, Settings

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
API_FUNCTIONS = ("ingest", "subscriptions", "admin", "console")


def function_spec(name: str, kind: FunctionKind, environment: Mapping[str, str]) -> FunctionSpec:
    return FunctionSpec(
        f"hooksaga-{name}",
        f"functions.{name}.handler.handler",
        kind.timeout_seconds,
        environment,
        concurrency=kind.concurrency,
    )


def environment_of(settings: Settings, **overrides: str) -> dict[str, str]:
    """Return the variables that give a function these settings, without defaults."""
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
