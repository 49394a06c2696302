"""The OpenAPI document cut into what the template shows: groups of operations, objects with their fields, errors."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby
from typing import Any

from markupsafe import Markup

from docs.generators.reference.schema_words import Json, rules_of, type_of
from hooksaga.core.problems import Problem

IDS = {"event_id": "evt_0199c0de7d4e7a3b8f1e2d3c4b5a6978", "id": "42"}
"""Example values of path parameters, by the parameter's name in the document."""

SAMPLE_KEY = "order-1001"
HIDDEN = frozenset({"OpenApi", "ReferencePage"})
"""Schemas of answers that are documents by themselves."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field or a parameter. `place` is empty but for parameters: path, query or header."""

    name: str
    kind: Markup
    required: bool
    words: str
    rules: list[str]
    place: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    phrase: str
    words: str
    schema: str


@dataclass(frozen=True, slots=True)
class Operation:
    """`example` is a command, `answer_example` what it prints, None for nothing that could be shown."""

    anchor: str
    method: str
    path: str
    summary: str
    words: str
    parameters: list[Field]
    body: list[Field]
    body_words: str
    answers: list[Answer]
    problems: list[str]
    example: str
    answer_example: Any


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    title: str
    words: str
    operations: list[Operation]


@dataclass(frozen=True, slots=True)
class Object:
    """A named schema with fields, or one without, of which `kind` tells."""

    name: str
    words: str
    fields: list[Field]
    kind: Markup


def groups_of(document: Json) -> list[Group]:
    """In the document's order of tags; the operations of a tag in their order of paths."""
    reader = _Reader(document)
    return [
        Group(
            tag["name"],
            tag["name"].replace("-", " ").capitalize(),
            tag["description"],
            list(reader.operations(tag["name"])),
        )
        for tag in document["tags"]
    ]


def objects_of(document: Json) -> list[Object]:
    """Every named schema that is not the body of a request, which its operation shows in full."""
    schemas: Mapping[str, Json] = document["components"]["schemas"]
    bodies = {name for operation in _operations(document) for name in _body_schemas(operation[2])[:1]}
    return [
        Object(
            name,
            schema.get("description", ""),
            fields_of(schema),
            type_of({**schema, "properties": {}} if "properties" in schema else schema),
        )
        for name, schema in schemas.items()
        if name not in bodies | HIDDEN
    ]


def fields_of(schema: Json) -> list[Field]:
    """Required fields first, each part in its order."""
    required = set(schema.get("required", []))
    fields = [
        Field(name, type_of(field), name in required, field.get("description", ""), rules_of(field))
        for name, field in schema.get("properties", {}).items()
    ]
    return sorted(fields, key=lambda field: not field.required)


def problems_by_status(problems: Iterable[Problem]) -> list[tuple[int, str, list[Problem]]]:
    """Status, its standard phrase, and the errors that have it."""
    return [
        (status, HTTPStatus(status).phrase, list(group))
        for status, group in groupby(problems, key=lambda problem: problem.status)
    ]


def _operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _body_schemas(operation: Json) -> list[str]:
    content: Json = operation.get("requestBody", {}).get("content", {})
    return [_name_of(media["schema"]) for media in content.values()]


def _name_of(schema: Json) -> str:
    return str(schema.get("$ref", "")).rsplit("/", 1)[-1]


class _Reader:
    """Looks up what operations refer to."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._schemas: Mapping[str, Json] = document["components"]["schemas"]

    def operations(self, tag: str) -> Iterator[Operation]:
        for method, path, operation in _operations(self._document):
            if tag in operation["tags"]:
                yield self._operation(method, path, operation)

    def _operation(self, method: str, path: str, operation: Json) -> Operation:
        names = _body_schemas(operation)
        answers = list(self._answers(operation))
        shown = [self._schemas[answer.schema] for answer in answers if answer.schema]
        return Operation(
            anchor=operation["operationId"].replace("_", "-"),
            method=method.upper(),
            path=path,
            summary=operation["summary"],
            words=operation.get("description", ""),
            parameters=[self._parameter(one) for one in operation["parameters"]],
            body=fields_of(self._schemas[names[0]]) if names else [],
            body_words=_body_words(operation),
            answers=answers,
            problems=[status for status, answer in operation["responses"].items() if "$ref" in answer],
            example=self._example(method, path, operation),
            answer_example=next((schema["examples"][0] for schema in shown if "examples" in schema), None),
        )

    def _parameter(self, reference: Json) -> Field:
        content = self._document["components"]["parameters"][_name_of(reference)]
        schema, words = content["schema"], content.get("description", "")
        return Field(
            content["name"], type_of(schema), content["required"], words, rules_of(schema), content["in"]
        )

    def _answers(self, operation: Json) -> Iterator[Answer]:
        for status, answer in operation["responses"].items():
            if "$ref" not in answer:
                media = next(iter(answer.get("content", {}).values()), {"schema": {}})
                schema = _name_of(media["schema"])
                words = "" if answer["description"] == operation["summary"] else answer["description"]
                yield Answer(
                    status, HTTPStatus(int(status)).phrase, words, "" if schema in HIDDEN else schema
                )

    def _example(self, method: str, path: str, operation: Json) -> str:
        """A command for a shell with the API's address and a key in variables."""
        names = [_name_of(reference) for reference in operation["parameters"]]
        for name in names:
            path = path.replace("{id}", IDS.get(name, "{id}"))
        flag = "" if method == "get" else f"-X {method.upper()} "
        lines = [f'curl {flag}"$HOOKSAGA{path}"']
        if operation.get("security"):
            lines.append('-H "Authorization: Bearer $KEY"')
        if "idempotency_key" in names:
            lines.append(f'-H "Idempotency-Key: {SAMPLE_KEY}"')
        lines += self._example_body(operation)
        return " \\\n  ".join(lines)

    def _example_body(self, operation: Json) -> Iterator[str]:
        for name in _body_schemas(operation)[:1]:
            yield '-H "Content-Type: application/json"'
            if "examples" in self._schemas[name]:
                yield f"-d '{json.dumps(self._schemas[name]['examples'][0], indent=2)}'"


def _body_words(operation: Json) -> str:
    if "requestBody" not in operation:
        return ""
    types = " or ".join(f"`{media_type}`" for media_type in operation["requestBody"]["content"])
    return types if operation["requestBody"]["required"] else f"{types}; it may be left out"
