"""Description of one route in the OpenAPI document."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from hooksaga.api.answers.answer import Answer

BODY = "400 408 413 415 422"
"""Error statuses of every request with a body."""

_OF_SERVICE = frozenset({"stats", "openapi.json", "docs", "healthz"})


@dataclass(frozen=True, slots=True)
class Given:
    """A response: its class, or the name of a schema without a class, or None for no body; and its meaning, if an
    operation has several."""

    what: type[Answer] | str | None
    meaning: str = ""

    @property
    def schema_name(self) -> str | None:
        return self.what.__name__ if isinstance(self.what, type) else self.what


@dataclass(frozen=True, slots=True)
class Operation:
    """One route. answers: responses by status. problems: statuses beyond those of every route.

    export: it is a list, which can be exported. body: its model, or the name of a schema without a model.
    """

    method: str
    path: str
    summary: str
    scopes: tuple[str, ...]
    answers: Mapping[str, Given]
    words: str = ""
    problems: str = ""
    body: type[BaseModel] | str | None = None
    body_is_optional: bool = False
    parameters: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ("application/json",)
    answer_type: str = "application/json"
    export: bool = False

    @property
    def body_name(self) -> str | None:
        return self.body.__name__ if isinstance(self.body, type) else self.body

    @property
    def id(self) -> str:
        words = (
            self.path.removeprefix("/v1").replace("{id}", "one").replace("{name}", "one").replace(".json", "")
        )
        return "_".join([self.method, *words.replace("-", "_").strip("/").split("/")])

    @property
    def group(self) -> str:
        """Return the tag: the first part of the path after the version, or `service`."""
        first = self.path.removeprefix("/v1").split("/")[1]
        return "service" if first in _OF_SERVICE else first

    @property
    def description(self) -> str:
        scopes = " or ".join(f"`{scope}`" for scope in self.scopes)
        return " ".join(filter(None, [self.words, f"Needs the scope {scopes}." if scopes else ""]))

    @property
    def problem_statuses(self) -> list[str]:
        """Return the statuses of errors, including those of every route with a key."""
        keys = ["401", "403", "503"] if self.scopes else []
        health = ["503"] if self.path == "/healthz" else []
        return sorted({*self.problems.split(), *keys, *health})
