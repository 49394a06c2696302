"""Options that several commands share: the fields of a data class, which a command takes as one argument."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

import typer

Command = Callable[..., None]


class Commands(typer.Typer):
    """Commands, each with an option for every field of its parameters that are data classes."""

    def command(self, *args: Any, **settings: Any) -> Callable[[Any], Any]:
        register = super().command(*args, **settings)

        def add(command: Command) -> Command:
            register(_with_options(command))
            return command

        return add


def _with_options(command: Command) -> Command:
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        command(**given)

    parameters = [
        one
        for name, parameter in inspect.signature(command).parameters.items()
        for one in (_options(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])])
    ]
    ordered = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    run.__signature__ = inspect.Signature(ordered)  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {one.name: one.annotation for one in ordered}
    return run


def _options(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for one in fields(group):
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        yield inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[one.name]
        )
