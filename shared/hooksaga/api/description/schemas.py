"""JSON schemas of the OpenAPI document, each with an example, from the response classes."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from hooksaga.api.answers.answer import Answer, reference_to

Json = dict[str, Any]


def schemas_of(classes: Iterable[type[Answer]]) -> Json:
    """Return the schemas of these classes, and of classes that their fields reference, by name.

    Raises ValueError for a field without a description or an example.
    """
    _, found = msgspec.json.schema_components(list(classes), ref_template=reference_to("{name}"))
    examples = _Examples(found)
    return {name: _described(name, schema, examples) for name, schema in found.items()}


def _described(name: str, schema: Json, examples: "_Examples") -> Json:
    fields: Json = {field: _field(f"{name}.{field}", part) for field, part in schema["properties"].items()}
    kept = {key: value for key, value in schema.items() if key != "title"}
    return {**kept, "properties": fields, "examples": [examples.of_object(name)]}


def _field(name: str, schema: Json) -> Json:
    """Return a field's schema without its example, which is part of the object's example."""
    if "description" not in schema:
        raise ValueError(f"{name} has no description")
    return {key: value for key, value in schema.items() if key != "examples"}


class _Examples:
    """Builds examples of objects from those of their fields."""

    def __init__(self, schemas: Json) -> None:
        self._schemas = schemas

    def of_object(self, name: str) -> Any:
        """Return the example of an object: that of each field."""
        schema = self._schemas[name]
        if "examples" in schema:
            return schema["examples"][0]
        return {field: self._of(f"{name}.{field}", part) for field, part in schema["properties"].items()}

    def _of(self, name: str, schema: Json) -> Any:
        """Return the example of a field: its own if it has one, otherwise that of its type."""
        for example in self._own(name, schema):
            return example
        raise ValueError(f"{name} has no example")

    def _own(self, name: str, schema: Json) -> Iterator[Any]:
        match schema:
            case {"examples": [*_, last]}:
                yield last
            case {"$ref": str(reference)}:
                yield self.of_object(reference.rsplit("/", 1)[1])
            case {"type": "array", "items": {"anyOf": choices}}:
                yield [self._of(name, choice) for choice in cast(list[Json], choices)]
            case {"type": "array", "items": items}:
                yield [self._of(name, cast(Json, items))]
            case {"anyOf": [first, *_]}:
                yield self._of(name, cast(Json, first))
            case _:
                return
