"""Encryption at rest of signing secrets and header values, with Fernet of the `cryptography` package (AES-128-CBC and
HMAC).

Several keys allow a rotation: the first one encrypts, all of them decrypt.
"""

import base64
from collections.abc import Callable, Sequence
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


class UnreadableSecret(Exception):
    """No key decrypts this ciphertext: it is damaged, or its key is missing. The message never contains it."""


class SecretBox:
    """Encrypts and decrypts secrets. Raises ValueError for a key that is not 32 bytes of URL-safe base64.

    keys_now: returns the keys as they are now. It is given True if no present key decrypts a value, so newer ones are
    needed.
    """

    def __init__(self, keys: Sequence[str], keys_now: Callable[[bool], Sequence[str]] | None = None) -> None:
        self._keys_now = keys_now
        self._use(tuple(keys))
        self._open_cached = lru_cache(maxsize=10_000)(self._open)
        self._for_purposes = dict[str, SecretBox]()

    def for_purpose(self, purpose: str) -> "SecretBox":
        """Return the box for another purpose, with derived keys (HKDF): neither box decrypts the other's values.

        Cached, so each purpose has its own cache of decrypted values.
        """
        if purpose not in self._for_purposes:

            def keys_now(newer: bool) -> list[str]:
                self._renew(newer=newer)
                return [_derived(key, purpose) for key in self._keys]

            self._for_purposes[purpose] = SecretBox(keys_now(False), keys_now)
        return self._for_purposes[purpose]

    def seal(self, secret: str) -> str:
        """Encrypt with the first key; the ciphertext is ASCII text."""
        self._renew()
        return self._fernet.encrypt(secret.encode()).decode("ascii")

    def open(self, sealed: str) -> str:
        """Decrypt a secret. Cached, because all deliveries of a subscription use the same one. Raises
        UnreadableSecret."""
        return self._open_cached(sealed)

    def reseal(self, sealed: str) -> str | None:
        """Encrypt the secret with the first key; None if it already is. Raises UnreadableSecret."""
        self._renew()
        try:
            self._first.decrypt(sealed.encode())
        except (InvalidToken, UnicodeError):
            return self.seal(self._open(sealed))
        return None

    def _open(self, sealed: str) -> str:
        self._renew()
        try:
            return self._decrypt(sealed)
        except UnreadableSecret:
            if not self._renew(newer=True):
                raise
            return self._decrypt(sealed)

    def _decrypt(self, sealed: str) -> str:
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except (InvalidToken, UnicodeError):
            raise UnreadableSecret(
                "a subscription's secret cannot be decrypted with the configured keys"
            ) from None

    def _renew(self, *, newer: bool = False) -> bool:
        """Take the keys as they are now. Return whether they differ."""
        keys = tuple(self._keys_now(newer)) if self._keys_now else self._keys
        differ = keys != self._keys
        if differ:
            self._use(keys)
        return differ

    def _use(self, keys: tuple[str, ...]) -> None:
        if not keys:
            raise ValueError("at least one key is required")
        self._fernet = MultiFernet([Fernet(key) for key in keys])
        self._first = Fernet(keys[0])
        self._keys = keys


def generate_key() -> str:
    return Fernet.generate_key().decode("ascii")


@lru_cache(maxsize=32)
def _derived(key: str, purpose: str) -> str:
    kdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=f"hooksaga:{purpose}".encode())
    return base64.urlsafe_b64encode(kdf.derive(base64.urlsafe_b64decode(key))).decode("ascii")
