"""Every error code and status that the code can answer, read from the code itself."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from starlette.exceptions import HTTPException

from hooksaga.api import problem_answers
from hooksaga.aws.gateway_answers import CODES, status_of
from hooksaga.core.problems import BY_CODE
from hooksaga.worker import http_answers

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "shared/hooksaga"
FLOORS = (
    "functions",
    *(
        f"{PACKAGE}/{layer}"
        for layer in ("core", "adapters", "runtime", "stages", "operations", "api", "aws", "console")
    ),
)
DEFAULT_STATUSES = {"InvalidInput": 400, "NotFound": 404, "Conflict": 409}

Raised = tuple[str, int]
T = TypeVar("T")


def raised() -> set[Raised]:
    """Code and status of every error that carries its own, of every kind that problem_answers maps, and those that the
    gateway and the local server answer by themselves."""
    gateway = {(code, status_of(kind)) for kind, code in CODES.items()}
    server = {(code, BY_CODE[code].status) for code in http_answers.CODES}
    return {*_constructed(), *_mapped(), *gateway, *server}


def _constructed() -> Iterator[Raised]:
    for floor in FLOORS:
        for path in sorted((ROOT / floor).rglob("*.py")):
            yield from constructed_in(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)))


def constructed_in(source: str, name: str) -> Iterator[Raised]:
    """Raises AssertionError where a code or a status stands not written out, so that it could be anything."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in DEFAULT_STATUSES
        ):
            where = f"{name}:{node.lineno}"
            given = [keyword.value for keyword in node.keywords if keyword.arg == "status"]
            status = _constant(given[0], int, where) if given else DEFAULT_STATUSES[node.func.id]
            yield _constant(node.args[0], str, where), status


def _constant(node: ast.expr, kind: type[T], where: str) -> T:
    assert isinstance(node, ast.Constant), f"{where}: not written out"
    assert isinstance(node.value, kind), where
    return node.value


def _mapped() -> Iterator[Raised]:
    yield from ((code, status) for _, status, code, _ in problem_answers._STATUSES if code)
    yield from ((code, status) for status, code in problem_answers._ROUTING_CODES.items())
    for other in (HTTPException(400), RuntimeError()):
        status, code, _ = problem_answers._status_of(other)
        yield code, status
