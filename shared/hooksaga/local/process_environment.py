"""Environment variables that give another process of this machine the settings of this one."""

import os
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from hooksaga.runtime.settings import PREFIX, Settings


def environment_of(settings: Settings, **overrides: str) -> dict[str, str]:
    """Return the variables of these settings, without defaults."""
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
