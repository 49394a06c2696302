"""Trigger of an attempt, and its headers without secrets."""

import json
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from hooksaga.adapters.http_sender import HttpSender, OutgoingRequest, SendOutcome
from hooksaga.adapters.secret_box import SecretBox, generate_key
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.attempts import MASK, SentHeaders, StartedBy, StatusClass, masked_headers, trigger_of
from hooksaga.core.cloud_event_output import FORMATS, DeliveryFormat, cloud_event_of, format_headers
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.signing import encode_secret, sign
from hooksaga.operations.subscriptions import Subscription
from hooksaga.operations.verify_subscription import SealedSecret, challenge
from hooksaga.stages.deliver import REMEMBERED_HEADERS, attempt, build_request
from hooksaga.stages.job_rows import ClaimedJob
from hooksaga.stages.own_headers import seal_headers

CLOUD_EVENT = json.dumps(
    {
        "tenant_id": "default",
        "source": "/shop",
        "external_id": "1",
        "ordering_key": None,
        "attributes": {"subject": "order 1"},
        "context": {},
    }
)
WEBHOOK_ID = UUID("01900000-0000-7000-8000-000000000001")


@pytest.mark.parametrize(
    ("attempt_number", "requeued_from", "resent_from", "bulk_operation_id", "trigger"),
    [
        (1, None, None, None, "first"),
        (2, None, None, None, "retry"),
        (1, 7, 5, None, "requeue"),
        (1, 7, 5, 3, "requeue"),
        (1, None, 5, None, "resend"),
        (1, None, 5, 3, "resend"),
        (1, None, None, 3, "backfill"),
        (2, 7, 5, 3, "retry"),
    ],
)
def test_an_attempt_says_why_it_was_made(
    attempt_number: int,
    requeued_from: int | None,
    resent_from: int | None,
    bulk_operation_id: int | None,
    trigger: str,
) -> None:
    told = trigger_of(
        attempt_number,
        requeued_from=requeued_from,
        resent_from=resent_from,
        bulk_operation_id=bulk_operation_id,
    )
    assert told == trigger


def test_a_status_class_is_a_digit() -> None:
    assert [one.digit for one in StatusClass] == [1, 2, 3, 4, 5, 0]


def claimed(box: SecretBox, headers: str, **started: int) -> ClaimedJob:
    now = datetime(2026, 1, 31, tzinfo=UTC)
    return ClaimedJob(
        id=1,
        saga_id=1,
        subscription_id=1,
        attempt_number=3,
        claim_count=1,
        leased_at=now,
        lease_until=now,
        event_id=1,
        webhook_id=WEBHOOK_ID,
        traceparent=None,
        event_type="order.created",
        event_created_at=now,
        payload="{}",
        callback_url="https://receiver.example.com/",
        headers=headers,
        timeout_seconds=None,
        deliverable=True,
        secrets=[box.seal(encode_secret(b"k" * 32))],
        **started,  # pyright: ignore[reportArgumentType]
    )


class AnsweringSender(HttpSender):
    """Sends nothing: records each request, and returns its challenge."""

    def __init__(self) -> None:
        super().__init__(AddressPolicy())
        self.sent: list[OutgoingRequest] = []

    async def send(self, request: OutgoingRequest) -> SendOutcome:
        self.sent.append(request)
        answer = json.loads(request.body).get("challenge", "")
        return SendOutcome(200, None, answer, False, None, "192.0.2.1", 1)

    def assert_signed_at(self, moment: int) -> None:
        (request,) = self.sent
        signature = sign([b"k" * 32], request.headers["webhook-id"], moment, request.body)
        assert request.headers["webhook-timestamp"] == str(moment)
        assert request.headers["webhook-signature"] == signature


async def test_a_request_is_dated_by_the_databases_clock() -> None:
    """A receiver refuses what is too old or too new, and the clock of this process may be either."""
    box, sender = SecretBox([generate_key()]), AnsweringSender()
    job = claimed(box, "{}")
    await attempt(sender, box, job, timeout_seconds=1)
    sender.assert_signed_at(int(job.leased_at.timestamp()))


async def test_a_challenge_is_dated_by_the_databases_clock() -> None:
    box, sender, then = SecretBox([generate_key()]), AnsweringSender(), datetime(2001, 9, 9, tzinfo=UTC)
    subscription = Subscription(
        id=1,
        tenant_id="default",
        event_type="order.created",
        event_types=["order.created"],
        callback_url="https://receiver.example/",
        pending_callback_url=None,
        description="",
        active=True,
        verified=False,
        eligible_since=None,
        max_retry_limit=None,
        base_delay_seconds=None,
        timeout_seconds=None,
        max_in_flight=None,
        rate_limit_count=None,
        rate_limit_seconds=None,
        ordered=False,
        max_wait_seconds=None,
        circuit_breaker=True,
        format="payload",
        paused_at=None,
        headers={},
        created_at=then,
        updated_at=then,
        deleted_at=None,
    )
    sealed = SealedSecret(box.seal(encode_secret(b"k" * 32)), read_at=1_000_000_000)
    await challenge(sender, box, subscription, [sealed])
    sender.assert_signed_at(1_000_000_000)


@pytest.mark.parametrize(
    ("started", "cause"),
    [
        ({}, None),
        ({"requeued_from": 7}, StartedBy.REQUEUE),
        ({"requeued_from": 7, "bulk_operation_id": 3}, StartedBy.REQUEUE),
        ({"resent_from": 5}, StartedBy.RESEND),
        ({"bulk_operation_id": 3}, StartedBy.BACKFILL),
    ],
)
@pytest.mark.parametrize("delivery_format", FORMATS)
@pytest.mark.parametrize("is_test", [False, True])
def test_masked_headers_are_those_of_the_request_but_for_secrets_and_the_version(
    started: dict[str, int], cause: StartedBy | None, delivery_format: DeliveryFormat, is_test: bool
) -> None:
    """Held against the request itself, so that a header added there is not forgotten here."""
    box = SecretBox([generate_key()])
    job = claimed(box, '{"authorization": "Bearer hush", "x-shop": "hush"}', **started)
    job = msgspec.structs.replace(job, format=delivery_format, cloud_event=CLOUD_EVENT, is_test=is_test)
    event = cloud_event_of(
        CLOUD_EVENT,
        webhook_id=event_id_text(WEBHOOK_ID),
        event_type=job.event_type,
        created_at=job.event_created_at,
    )
    sent = build_request(job, box, timeout_seconds=1, timestamp=1_767_225_600).headers
    told = masked_headers(
        SentHeaders(1_767_225_600, ("authorization", "x-shop")),
        webhook_id=event_id_text(WEBHOOK_ID),
        event_type="order.created",
        attempt_number=3,
        cause=cause,
        traceparent=sent["traceparent"],
        formatted=format_headers(job.format, event),
        is_test=is_test,
    )
    assert sent.get("hooksaga-started-by") == cause
    assert sent.get("hooksaga-test") == ("true" if is_test else None)
    secret = {"webhook-signature", "authorization", "x-shop"}
    assert list(told) == [name for name in sent if name != "user-agent"]
    assert {name for name, value in told.items() if value == MASK} == secret
    assert all(told[name] == sent[name] for name in told.keys() - secret)


def test_a_broken_own_header_never_shows_a_value() -> None:
    """A stored header by the name of one of ours was sent instead of it: what it held is masked all the same."""
    told = masked_headers(
        SentHeaders(1, ("webhook-id",)),
        webhook_id="evt_1",
        event_type="a",
        attempt_number=1,
        cause=None,
        traceparent="",
        formatted=format_headers("payload", None),
        is_test=False,
    )
    assert told["webhook-id"] == MASK


@pytest.mark.parametrize("count", [1, 20])
def test_a_value_is_opened_once_however_many_attempts_carry_it(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decrypting costs more than all else of a request's making."""
    box, opened = SecretBox([generate_key()]), list[str]()
    stored = json.dumps(seal_headers(box, {f"x-{n}": "v" * 100 for n in range(count)}))
    assert (len(stored) <= REMEMBERED_HEADERS) is (count == 1)
    decrypt = SecretBox._open

    def counting(self: SecretBox, sealed: str) -> str:
        opened.append(sealed)
        return decrypt(self, sealed)

    monkeypatch.setattr(SecretBox, "_open", counting)
    box = SecretBox(box._keys)
    for _ in range(3):
        job = claimed(box, json.loads(json.dumps(stored)))
        sent = build_request(job, box, timeout_seconds=1, timestamp=1).headers
        assert sent["x-0"] == "v" * 100
    secrets = 3
    assert len(opened) == count + secrets
