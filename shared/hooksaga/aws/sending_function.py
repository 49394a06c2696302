"""A function that calls receivers. Only the bundles of `delivery` and `subscriptions` contain this module."""

import functools

from hooksaga.adapters.aws_secrets import read_secret
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.aws.function import Function
from hooksaga.core.secrets_keys import split_keys
from hooksaga.runtime.settings import InvalidSettings, Settings


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
    return SecretBox([_padded(key) for key in split_keys(read_secret(settings.secrets_key_arn))])


def _padded(key: str) -> str:
    """Pad a key that Secrets Manager generated: random letters and digits are base64 without padding."""
    return key + "=" * (-len(key) % 4)
