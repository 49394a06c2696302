"""A function that calls receivers. Only the bundles of `delivery` and `subscriptions` contain this module."""

import functools

from hooksaga.adapters.aws_secrets import RenewedSecret
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.aws.function import Function
from hooksaga.core.secrets_keys import is_key, split_keys
from hooksaga.runtime.settings import InvalidSettings, Settings
from hooksaga.runtime.telemetry import logger


class SendingFunction(Function):
    """A function that opens signing secrets and POSTs."""

    @functools.cached_property
    def box(self) -> SecretBox:
        return function_secret_box(self.settings)

    @functools.cached_property
    def sender(self) -> HttpSender:
        ca_file = self.settings.ca_file
        return HttpSender(
            self.settings.address_policy,
            connect_timeout_seconds=self.settings.http_connect_timeout_seconds,
            ca_file=str(ca_file) if ca_file else None,
        )


def function_secret_box(settings: Settings) -> SecretBox:
    """Return the box with the keys of signing secrets. Raises InvalidSettings when neither keys nor an ARN is set."""
    if settings.secrets_keys:
        return SecretBox(settings.secrets_keys)
    if settings.secrets_key_arn is None:
        raise InvalidSettings("HOOKSAGA_SECRETS_KEY or HOOKSAGA_SECRETS_KEY_ARN must be set")
    secret = RenewedSecret(settings.secrets_key_arn, _parsed, _tell)
    return SecretBox(secret.value(), lambda newer: secret.value(newer=newer))


def _parsed(text: str) -> list[str]:
    """Return the keys. Raises ValueError.

    A key that Secrets Manager generated is padded: random letters and digits are base64 without padding.
    """
    keys = [key + "=" * (-len(key) % 4) for key in split_keys(text)]
    if not keys or not all(is_key(key) for key in keys):
        raise ValueError("must be keys of 32 bytes in URL-safe base64, separated by commas")
    return keys


def _tell(reason: str) -> None:
    logger.error("secret not renewed", extra={"reason": reason})
