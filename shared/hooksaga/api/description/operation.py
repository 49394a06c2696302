"""Description of one route in the OpenAPI document."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from hooksaga.api.answers.answer import Answer

_OF_BODY = ("400", "408", "413", "415", "422")
"""Error statuses of every request with a body."""

_PATH_PARAMETERS = {"/v1/events/{id}": "event_id", "{id}": "id", "{name}": "name"}
"""Parameters by the part of the path that they are in; the first part that fits counts."""

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
    """One route, such as `GET /v1/events`. answers: responses by status. problems: statuses of errors that do not
    follow from the scopes, the body and the parameters. parameters: those that are not in the path.

    export: it is a list, which can be exported. body: its model, or the name of a schema without a model.
    """

    route: str
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
    def method(self) -> str:
        return self.route.partition(" ")[0].lower()

    @property
    def path(self) -> str:
        return self.route.partition(" ")[2]

    @property
    def all_parameters(self) -> tuple[str, ...]:
        in_path = next((name for part, name in _PATH_PARAMETERS.items() if part in self.path), None)
        return ((in_path,) if in_path else ()) + self.parameters

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
        """Return the statuses of errors: of keys, an unknown id, the query, the body, and this route's own."""
        keys = ["401", "403", "503"] if self.scopes else []
        health = ["503"] if self.path == "/healthz" else []
        unknown = ["404"] if "{" in self.path and self.method != "put" else []
        query = ["422"] if self.parameters and self.method == "get" else []
        body = _OF_BODY if self.body else ()
        return sorted({*self.problems.split(), *keys, *health, *unknown, *query, *body})
