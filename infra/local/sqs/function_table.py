"""The functions of SQS mode on one machine: their limits, what wakes them, what they see."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from infra.local.sqs.runtime_api import FunctionSpec
from shared.runtime.settings import PREFIX, Settings

VISIBILITY_FACTOR = 6
"""A message comes back after this many function timeouts, as AWS advises."""


@dataclass(frozen=True, slots=True)
class FunctionKind:
    """Limits of one function. `queues` wake it, and so does the clock if it is `scheduled`."""

    timeout_seconds: int
    concurrency: int = 2
    queues: tuple[str, ...] = ()
    scheduled: bool = False

    @property
    def visibility_seconds(self) -> int:
        return VISIBILITY_FACTOR * self.timeout_seconds


FUNCTIONS = {
    "ingest": FunctionKind(15, concurrency=4),
    "subscriptions": FunctionKind(29, concurrency=2),
    "admin": FunctionKind(29, concurrency=2),
    "router": FunctionKind(30, queues=("routing",), scheduled=True),
    "orchestrator": FunctionKind(30, concurrency=3, queues=("orchestration",), scheduled=True),
    "delivery": FunctionKind(45, concurrency=4, queues=("delivery", "delivery-retry")),
    "lease_cleaner": FunctionKind(30, scheduled=True),
}
API_FUNCTIONS = ("ingest", "subscriptions", "admin")


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
