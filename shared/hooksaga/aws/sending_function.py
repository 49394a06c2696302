"""A function that calls receivers: what only `delivery` and `subscriptions` carry, and no other bundle."""

import functools

from hooksaga.adapters.aws_secrets import read_secret
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.aws.function import Function
from hooksaga.core.secrets_keys import split_keys
from hooksaga.runtime.settings import InvalidSettings, Settings


class SendingFunction(Function):
    """Opens signing secrets, and POSTs."""

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
    """The keys that open signing secrets. Raises InvalidSettings when neither keys nor an ARN is set."""
    if settings.secrets_keys:
        return SecretBox(settings.secrets_keys)
    if settings.secrets_key_arn is None:
        raise InvalidSettings("HOOKSAGA_SECRETS_KEY or HOOKSAGA_SECRETS_KEY_ARN must be set")
    return SecretBox([_padded(key) for key in split_keys(read_secret(settings.secrets_key_arn))])


def _padded(key: str) -> str:
    """A key that Secrets Manager made is random letters and digits: base64 without the padding at its end."""
    return key + "=" * (-len(key) % 4)
