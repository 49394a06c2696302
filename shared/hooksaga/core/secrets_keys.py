"""Syntax of the keys that encrypt subscription secrets.

Nothing is decrypted here, so that settings can be checked where no secret is decrypted.
"""

from base64 import urlsafe_b64decode

KEY_BYTES = 32


def split_keys(text: str) -> list[str]:
    """Return the configured keys, separated by commas; the first one encrypts."""
    return [part.strip() for part in text.split(",") if part.strip()]


def is_key(text: str) -> bool:
    """Return whether the text is a Fernet key: 32 bytes of URL-safe base64."""
    try:
        return len(urlsafe_b64decode(text)) == KEY_BYTES
    except ValueError:
        return False
