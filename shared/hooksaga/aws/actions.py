"""Actions of direct invocations: `{"action": ...}`."""

import json
from collections.abc import Awaitable
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from hooksaga.api.problem_answers import item_problem
from hooksaga.core.errors import HooksagaError, InvalidInput

Action = TypeVar("Action")


def read_action(kinds: TypeAdapter[Action], event: dict[str, Any]) -> Action:
    """Return the event as one of these kinds. Raises InvalidInput with the field and the rule."""
    try:
        return kinds.validate_json(json.dumps(event))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = [str(part) for part in first["loc"]]
        field = ".".join(place[1:] if place[:1] == [event.get("action")] else place) or "action"
        raise InvalidInput("invalid_field", f"{field}: {first['msg']}", field=field, status=422) from None


async def result_or_problem(work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """Return the result of an action, or `{"error": problem}` for an error of its caller."""
    try:
        return await work
    except HooksagaError as error:
        return {"error": item_problem(error).content()}
