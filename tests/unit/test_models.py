"""Times, and texts that would not survive: what the bodies of requests may hold."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from hooksaga.core.erasures import NewErasure
from hooksaga.core.event_type_models import NewEventType
from hooksaga.core.models import (
    NewSubscription,
    SecretRotation,
    SubscriptionChange,
    read_moment,
    rfc3339,
)
from hooksaga.core.portal_links import NewPortalLink
from hooksaga.core.requeue_models import RequeueFilter

GOOD = {"event_type": "a", "callback_url": "https://receiver.example.com/"}
RULE = "must be an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31t12:00:00z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.5+02:00", datetime(2026, 1, 31, 10, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_a_moment_has_its_offset(text: str, moment: datetime) -> None:
    assert read_moment(text) == moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("0001-01-01T00:00:00+14:00", datetime.min.replace(tzinfo=UTC)),
        ("9999-12-31T23:59:59-23:59", datetime.max.replace(tzinfo=UTC)),
        ("9999-12-31T23:59:60Z", datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_an_offset_leads_no_further_than_the_calendar(text: str, moment: datetime) -> None:
    assert read_moment(text) == moment


@pytest.mark.parametrize("text", ["14", "14.0", "1.4e1"])
def test_a_whole_number_is_one_however_json_writes_it(text: str) -> None:
    """JSON has one kind of number, and JSON Schema calls all of these integers."""
    assert RequeueFilter.model_validate_json(f'{{"limit": {text}}}').limit == 14
    new = f'{{"event_type": "a", "callback_url": "https://a.b/", "max_retry_limit": {text}}}'
    assert NewSubscription.model_validate_json(new).max_retry_limit == 14
    assert NewPortalLink.model_validate_json(f'{{"minutes": {text}}}').minutes == 14


@pytest.mark.parametrize("text", ["14.5", '"14"', "true", "1e400", "9007199254740993.0", "0.0", "1001.0"])
def test_what_is_no_whole_number_within_bounds_is_refused(text: str) -> None:
    """9007199254740993.0 would be read as another number."""
    field = "subscription_id" if text.startswith(("9", "0")) else "limit"
    with pytest.raises(ValidationError):
        RequeueFilter.model_validate_json(f'{{"{field}": {text}}}')


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T12:00:00",
        "2026-01-31",
        "2026-01-31 12:00:00Z",
        "T",
        "",
        "now",
        0,
        None,
        True,
        "2026-02-30T00:00:00Z",
    ],
)
def test_what_could_mean_another_moment_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=f"^{RULE}$"):
        read_moment(text)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, None),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T12:00:00.000000Z"),
        (
            datetime(2026, 1, 31, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=2))),
            "2026-01-30T23:02:03.000004Z",
        ),
    ],
)
def test_a_moment_is_told_in_utc(moment: datetime | None, text: str | None) -> None:
    assert rfc3339(moment) == text


@pytest.mark.parametrize("text", ["a\nb", "a\0", "\x1f", "\x7f"])
def test_control_characters_are_refused(text: str) -> None:
    with pytest.raises(ValidationError, match=r"error, control characters are not allowed \["):
        NewSubscription.model_validate({**GOOD, "description": text})


@pytest.mark.parametrize("text", ["", " ", "~", "\u0080", "caf\u00e9 \U0001f600", "x" * 500])
def test_other_text_is_kept(text: str) -> None:
    assert NewSubscription.model_validate({**GOOD, "description": text}).description == text


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ValidationError):
        RequeueFilter.model_validate({"error_code": "\ud800"})


POINTER_RULE = "must be a JSON Pointer (RFC 6901), such as /customer/country, of at most 500 characters"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("description", "a\tb", "control characters are not allowed, except line feeds"),
        ("description", "\x1f", "control characters are not allowed, except line feeds"),
        ("description", "\x7f", "control characters are not allowed, except line feeds"),
        ("attributes", [{"name": "a", "pointer": "a", "kind": "string"}], POINTER_RULE),
        ("attributes", [{"name": "a", "pointer": "/" + "a" * 500, "kind": "string"}], POINTER_RULE),
    ],
    ids=lambda value: ascii(value)[:20].replace("\\", "/"),
)
def test_an_event_type_is_refused_by_the_rule(field: str, value: object, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        NewEventType.model_validate({field: value})
    assert [error["msg"] for error in refused.value.errors()] == [f"Value error, {said}"]


def test_an_event_type_is_described_in_lines_and_has_pointers() -> None:
    attribute = {"name": "a", "pointer": "/" + "a" * 499, "kind": "string"}
    text = " ~\u0080\u00e9\nline 2 \U0001f600"
    kept = NewEventType.model_validate({"description": text, "attributes": [attribute]})
    assert (kept.description, kept.attributes[0].pointer) == (text, attribute["pointer"])
    with pytest.raises(ValidationError):
        NewEventType.model_validate({"description": "\ud800"})


@pytest.mark.parametrize("field", ["event_type", "callback_url", "description", "active"])
def test_null_does_not_reset_what_has_no_default(field: str) -> None:
    with pytest.raises(ValidationError, match="null is not allowed; omit the field to keep its value"):
        SubscriptionChange.model_validate({field: None})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"tenant_id": "a", "reason": " "}, "must not be blank"),
        ({"reason": "r"}, "event_id or tenant_id: give one of the two"),
        (
            {"tenant_id": "a", "attribute": None, "reason": "r"},
            "attribute: give a name, a colon and the value, with tenant_id",
        ),
    ],
)
def test_an_erasure_is_refused_by_the_rule(body: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        NewErasure.model_validate(body)
    assert [error["msg"] for error in refused.value.errors()] == [f"Value error, {said}"]


@pytest.mark.parametrize("field", ["max_retry_limit", "base_delay_seconds", "timeout_seconds", "headers"])
def test_null_resets_a_limit(field: str) -> None:
    assert SubscriptionChange.model_validate({field: None}).model_dump(exclude_unset=True) == {field: None}


SECRET = "whsec_" + "A" * 32


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        (SECRET.removeprefix("whsec_"), "a signing secret starts with whsec_"),
        (SECRET[:-4], "a signing key has 24 to 64 bytes, not 21"),
    ],
)
def test_a_given_secret_is_kept_or_refused_by_its_rule(secret: str, said: str) -> None:
    assert SecretRotation.model_validate({"secret": SECRET}).secret == SECRET
    with pytest.raises(ValidationError) as refused:
        SecretRotation.model_validate({"secret": secret})
    assert [error["msg"] for error in refused.value.errors()] == [f"Value error, {said}"]


@pytest.mark.parametrize("seconds", [-1, 7 * 86_400 + 1, float("nan"), float("inf")])
def test_an_overlap_has_bounds(seconds: float) -> None:
    with pytest.raises(ValidationError):
        SecretRotation.model_validate({"overlap_seconds": seconds})
    assert SecretRotation.model_validate({"overlap_seconds": 7 * 86_400}).overlap_seconds == 7 * 86_400


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone of a process is fixed here")
def test_a_moment_is_told_in_utc_wherever_this_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert rfc3339(datetime(2026, 1, 31, 12, tzinfo=UTC)) == "2026-01-31T12:00:00.000000Z"
    finally:
        monkeypatch.undo()
        time.tzset()
