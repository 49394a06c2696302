"""Encryption at rest of signing secrets and header values, with Fernet of the `cryptography` package (AES-128-CBC and
HMAC).

Several keys make a rotation: the first encrypts, all of them decrypt.
"""

import base64
from collections.abc import Sequence
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


class UnreadableSecret(Exception):
    """No key opens this ciphertext: it is damaged, or its key is gone. The message never holds it."""


class SecretBox:
    """Seals and opens secrets. Raises ValueError for a key that is not 32 bytes of URL-safe base64."""

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise ValueError("at least one key is needed")
        self._keys = tuple(keys)
        self._fernet = MultiFernet([Fernet(key) for key in keys])
        self._first = Fernet(keys[0])
        self._open_cached = lru_cache(maxsize=10_000)(self._open)
        self._for_purposes = dict[str, SecretBox]()

    def for_purpose(self, purpose: str) -> "SecretBox":
        """The box for something else, whose keys are derived from these (HKDF): neither opens what the other sealed.

        Derived once, so each purpose has a memory of its own for what it has opened.
        """
        if purpose not in self._for_purposes:
            self._for_purposes[purpose] = SecretBox([_derived(key, purpose) for key in self._keys])
        return self._for_purposes[purpose]

    def seal(self, secret: str) -> str:
        """Ciphertext under the first key, as ASCII text."""
        return self._fernet.encrypt(secret.encode()).decode("ascii")

    def open(self, sealed: str) -> str:
        """The secret. Remembered, because every delivery of a subscription opens the same one.

        Raises UnreadableSecret.
        """
        return self._open_cached(sealed)

    def reseal(self, sealed: str) -> str | None:
        """The same secret under the first key; None when it is that already. Raises UnreadableSecret."""
        try:
            self._first.decrypt(sealed.encode())
        except (InvalidToken, UnicodeError):
            return self.seal(self._open(sealed))
        return None

    def _open(self, sealed: str) -> str:
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except (InvalidToken, UnicodeError):
            raise UnreadableSecret(
                "a subscription's secret cannot be decrypted with the configured keys"
            ) from None


def generate_key() -> str:
    """A new random key for a SecretBox."""
    return Fernet.generate_key().decode("ascii")


def _derived(key: str, purpose: str) -> str:
    kdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=f"hooksaga:{purpose}".encode())
    return base64.urlsafe_b64encode(kdf.derive(base64.urlsafe_b64decode(key))).decode("ascii")
