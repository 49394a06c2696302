"""Input of pages: query parameters of searches, and forms. An empty field counts as missing."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from hooksaga.api.http_api import MAX_ID, invalid_field, read_body, services_of
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_catalogue import MAX_EVENT_TYPES
from hooksaga.core.moments import read_moment

FORM_TYPE = "application/x-www-form-urlencoded"
MAX_FIELDS = 60 + MAX_EVENT_TYPES
_FORM_SURPLUS = 4
"""Factor over the largest payload: a form escapes a three-byte character with nine bytes."""

_NO_SECONDS = re.compile(r"(T[0-9]{2}:[0-9]{2})([Zz+-])")

RULES = {
    "text": "has at most {most} printable characters",
    "id": "must be an integer of 1 or more",
    "integer": "must be an integer from {least} to {most}",
    "number": "must be a number",
    "time": "must be a time such as {sample}",
    "choice": "must be one of: {choices}",
    "period": "must be later than {begin}",
}
"""What a field must be, in words that pages translate."""


class WrongField(InvalidInput):
    """A field does not follow one of the RULES. sentence and values are those of the rule."""

    def __init__(self, name: str, rule: str, **values: object) -> None:
        self.sentence, self.values = RULES[rule], values
        super().__init__(
            "invalid_parameter", f"{name} {self.sentence.format(**values)}", field=name, status=422
        )


Model = TypeVar("Model", bound=BaseModel)
Choice = TypeVar("Choice", bound=StrEnum)


class Fields:
    """Text fields by name, with typed readers, which raise InvalidInput with the field's name."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields

    def __contains__(self, name: str) -> bool:
        return self.text(name) is not None

    def names(self) -> Iterable[str]:
        return self._fields.keys()

    def raw(self, name: str) -> str:
        return self._fields.get(name, "")

    def given(self, *names: str) -> dict[str, str]:
        """Return the fields that are not empty, as they were typed."""
        return {name: self.raw(name) for name in names if self.raw(name).strip()}

    def text(self, name: str, most: int = 100) -> str | None:
        value = self.raw(name).strip()
        if len(value) > most or not value.isprintable():
            raise WrongField(name, "text", most=most)
        return value or None

    def number(self, name: str, least: int = 1, most: int = MAX_ID) -> int | None:
        text = self.raw(name).strip()
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 19 and least <= int(text) <= most):
            if (least, most) == (1, MAX_ID):
                raise WrongField(name, "id")
            raise WrongField(name, "integer", least=least, most=most)
        return int(text)

    def count(self, name: str) -> int | None:
        """Return a count that an earlier page put into the address; None for any other text."""
        text = self.raw(name)
        return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None

    def decimal(self, name: str) -> float | None:
        text = self.raw(name).strip()
        try:
            return float(text) if text else None
        except ValueError:
            raise WrongField(name, "number") from None

    def moment(self, name: str) -> datetime | None:
        """Return a time in UTC. Browsers send times without an offset; these are UTC too. Seconds may be left out."""
        text = self.raw(name).strip()
        if not text:
            return None
        try:
            local = datetime.fromisoformat(text)
            return (
                local.replace(tzinfo=UTC)
                if local.tzinfo is None
                else read_moment(_NO_SECONDS.sub(r"\1:00\2", text))
            )
        except ValueError:
            raise WrongField(name, "time", sample="2026-01-31T12:00") from None

    def period(self) -> tuple[datetime | None, datetime | None]:
        """Return the times of `after` and `before`."""
        after, before = self.moment("after"), self.moment("before")
        if after is not None and before is not None and before <= after:
            raise WrongField("before", "period", begin=self.raw("after").strip())
        return after, before

    def without(self, name: str) -> "Fields":
        """Return the other fields."""
        return Fields({other: value for other, value in self._fields.items() if other != name})

    def local_moment(self, name: str) -> str:
        """Return a valid time as a browser's field takes it: in UTC, without an offset."""
        try:
            value = self.moment(name)
        except InvalidInput:
            return ""
        return (
            "" if value is None else value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
        )

    def choice(self, name: str, choices: type[Choice]) -> Choice | None:
        text = self.raw(name).strip()
        if not text:
            return None
        try:
            return choices(text)
        except ValueError:
            raise WrongField(name, "choice", choices=", ".join(choices)) from None


EMPTY_FIELDS = Fields({})
"""Fields of a new form."""


def query_fields(request: Request) -> Fields:
    return Fields(dict(request.query_params))


async def read_form(request: Request) -> Fields:
    """Return the form in the body. Raises InvalidInput for a body that is too large or not a form."""
    most = services_of(request).settings.payload_max_bytes * _FORM_SURPLUS
    body = await read_body(request, most, media_type=FORM_TYPE)
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"
        )
    except (ValueError, UnicodeError):
        raise InvalidInput("invalid_parameter", "the body must be a form", status=422) from None
    return Fields(dict(pairs))


def checked(model: type[Model], content: Mapping[str, Any]) -> Model:
    """Validate the content with a model. Raises InvalidInput like the API."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise invalid_field(error) from None
