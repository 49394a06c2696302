"""Standard Webhooks signatures: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.

Pure: secrets and times are arguments, and the body is signed as the bytes that are sent.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence

SECRET_PREFIX = "whsec_"  # noqa: S105 - the public mark of a secret, not one
# Receivers' libraries disagree about keys outside these bounds, so they are never stored.
MIN_KEY_BYTES = 24
MAX_KEY_BYTES = 64


WHSEC_PATTERN = (
    r"^whsec_(([A-Za-z0-9+/]{4}){8,20}([A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)?"
    r"|([A-Za-z0-9+/]{4}){21}([A-Za-z0-9+/][AQgw]==)?)$"
)
"""What decode_secret accepts, as a pattern of JSON Schema."""


class InvalidSecret(ValueError):
    """The text is not `whsec_` followed by padded base64 of 24 to 64 bytes. The message never contains it."""


def decode_secret(secret: str) -> bytes:
    """Return the 24 to 64 key bytes of a `whsec_` text.

    Raises InvalidSecret for any other text. Base64 without padding, or with extra bits, is rejected, because some
    receivers would decode another key from it.
    """
    if not secret.startswith(SECRET_PREFIX):
        raise InvalidSecret(f"a signing secret starts with {SECRET_PREFIX}")
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        raise InvalidSecret(f"a signing secret is padded base64 after {SECRET_PREFIX}") from None
    if encode_secret(key) != secret:
        raise InvalidSecret(f"a signing secret is padded base64 after {SECRET_PREFIX}")
    return key


def encode_secret(key: bytes) -> str:
    """Return the `whsec_` text of a key. Raises InvalidSecret unless the key has 24 to 64 bytes."""
    if not MIN_KEY_BYTES <= len(key) <= MAX_KEY_BYTES:
        raise InvalidSecret(f"a signing key has {MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes, not {len(key)}")
    return SECRET_PREFIX + base64.b64encode(key).decode("ascii")


def sign(keys: Sequence[bytes], webhook_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of webhook-signature: one `v1,…` per key, in order, separated by spaces.

    timestamp: Unix seconds. Raises ValueError without a key, and for an id with a full stop, which would make the
    signed text ambiguous.
    """
    if not keys:
        raise ValueError("a delivery needs at least one signing key")
    if "." in webhook_id:
        raise ValueError("a webhook id cannot contain a full stop")
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return " ".join(_signature(key, signed) for key in keys)


def _signature(key: bytes, signed: bytes) -> str:
    digest = hmac.digest(key, signed, hashlib.sha256)
    return "v1," + base64.b64encode(digest).decode("ascii")
