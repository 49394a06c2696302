"""Standard Webhooks signatures, checked by the verifier that receivers use."""

import base64
import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from hooksaga.core.signing import (
    SECRET_PREFIX,
    WHSEC_PATTERN,
    InvalidSecret,
    decode_secret,
    encode_secret,
    sign,
)

KEY = bytes(range(32))
OTHER_KEY = bytes(range(100, 132))
WEBHOOK_ID = "evt_0123456789abcdef0123456789abcdef"

PAYLOADS = [
    b"{}",
    b"null",
    b'{"a": 1.0, "b": [1e400, 18446744073709551616]}',
    b'{ "spaces" :\t"kept" ,\n"order": 1, "order": 2 }',
    '{"text": "caf\u00e9 \U0001f600 \u2028 \u2029 </script> & \\/"}'.encode(),
    b'{"nul": "\\u0000", "surrogate": "\\ud83d\\ude00"}',
    json.dumps({"long": "x" * 200_000}).encode(),
]


def verify(secret: str, body: bytes, signature: str, timestamp: int, webhook_id: str = WEBHOOK_ID) -> None:
    headers = {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature,
    }
    Webhook(secret).verify(body, headers)


@pytest.mark.parametrize("body", PAYLOADS)
def test_a_receiver_verifies_every_payload(body: bytes) -> None:
    now = int(time.time())
    verify(encode_secret(KEY), body, sign([KEY], WEBHOOK_ID, now, body), now)


@given(key=st.binary(min_size=24, max_size=64), text=st.text(st.characters(codec="utf-8")))
def test_a_receiver_verifies_with_every_key(key: bytes, text: str) -> None:
    now = int(time.time())
    body = json.dumps({"text": text}, ensure_ascii=False).encode()
    verify(encode_secret(key), body, sign([key], WEBHOOK_ID, now, body), now)


def test_while_secrets_rotate_both_verify() -> None:
    now = int(time.time())
    signature = sign([KEY, OTHER_KEY], WEBHOOK_ID, now, b"{}")
    assert len(signature.split(" ")) == 2
    for key in (KEY, OTHER_KEY):
        verify(encode_secret(key), b"{}", signature, now)


@pytest.mark.parametrize(
    ("body", "webhook_id", "shift"),
    [(b"{ }", WEBHOOK_ID, 0), (b"{}", "evt_other", 0), (b"{}", WEBHOOK_ID, 1)],
)
def test_another_body_id_or_time_does_not_verify(body: bytes, webhook_id: str, shift: int) -> None:
    now = int(time.time())
    signature = sign([KEY], WEBHOOK_ID, now, b"{}")
    with pytest.raises(WebhookVerificationError):
        verify(encode_secret(KEY), body, signature, now + shift, webhook_id)


def test_another_secret_does_not_verify() -> None:
    now = int(time.time())
    with pytest.raises(WebhookVerificationError):
        verify(encode_secret(OTHER_KEY), b"{}", sign([KEY], WEBHOOK_ID, now, b"{}"), now)


def test_a_known_signature() -> None:
    """The example of the Standard Webhooks documents, so that a change on both sides shows."""
    key = decode_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    signature = sign([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_nothing_is_signed_without_a_key() -> None:
    with pytest.raises(ValueError, match=r"^a delivery needs at least one signing key$"):
        sign([], WEBHOOK_ID, 1, b"{}")


def test_an_id_cannot_move_into_the_timestamp() -> None:
    with pytest.raises(ValueError, match=r"^a webhook id cannot contain a full stop$"):
        sign([KEY], "evt_1.2", 3, b"{}")


@pytest.mark.parametrize("size", [24, 25, 26, 32, 63, 64])
def test_secrets_round_trip(size: int) -> None:
    key = bytes(range(size))
    assert decode_secret(encode_secret(key)) == key


@pytest.mark.parametrize("size", [0, 1, 8, 23, 65, 1000])
def test_keys_of_other_sizes_are_refused(size: int) -> None:
    text = "whsec_" + base64.b64encode(bytes(size)).decode()
    with pytest.raises(InvalidSecret):
        decode_secret(text)
    with pytest.raises(InvalidSecret):
        encode_secret(bytes(size))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        "whsec",
        base64.b64encode(KEY).decode(),
        "WHSEC_" + base64.b64encode(KEY).decode(),
        "whsec_" + base64.b64encode(KEY).decode().rstrip("="),
        "whsec_" + base64.b64encode(KEY).decode() + "=",
        "whsec_" + base64.b64encode(KEY).decode() + "\n",
        " whsec_" + base64.b64encode(KEY).decode(),
        "whsec_" + base64.urlsafe_b64encode(b"\xff" * 32).decode(),
        "whsec_" + base64.b64encode(KEY).decode()[:-2] + "9=",
        "whsec_caf\u00e9",
    ],
)
def test_other_texts_are_no_secret_and_do_not_show_in_the_message(text: str) -> None:
    with pytest.raises(InvalidSecret) as raised:
        decode_secret(text)
    secret_part = text.removeprefix("whsec_")
    assert len(secret_part) < 6 or secret_part not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("secret", "a signing secret starts with whsec_"),
        ("whsec_!", "a signing secret is padded base64 after whsec_"),
        (
            "whsec_" + base64.b64encode(KEY).decode().rstrip("="),
            "a signing secret is padded base64 after whsec_",
        ),
        (
            "whsec_" + base64.b64encode(KEY).decode()[:-2] + "9=",
            "a signing secret is padded base64 after whsec_",
        ),
        ("whsec_AAAA", "a signing key has 24 to 64 bytes, not 3"),
    ],
)
def test_the_refusal_of_a_secret_says_the_rule(text: str, rule: str) -> None:
    with pytest.raises(InvalidSecret, match=f"^{rule}$"):
        decode_secret(text)


@pytest.mark.parametrize("size", range(20, 70))
def test_the_described_form_of_a_secret_is_what_is_accepted(size: int) -> None:
    text = SECRET_PREFIX + base64.b64encode(bytes(range(size))).decode()
    for shown in (text, text.rstrip("="), text + "=", text[:-1] + "B", text.replace("whsec_", "whsec-")):
        try:
            decode_secret(shown)
        except InvalidSecret:
            assert re.match(WHSEC_PATTERN, shown) is None
        else:
            assert re.match(WHSEC_PATTERN, shown) is not None
