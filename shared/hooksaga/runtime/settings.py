"""All configuration, read from environment variables and validated at the start."""

import re
from collections.abc import Callable
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from hooksaga.adapters.libpq import is_conninfo
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.endpoint_health import HealthPolicy
from hooksaga.core.intake_rules import (
    DEFAULT_EVENT_TYPE,
    IntakeRules,
    read_attribute_pointers,
    read_key_template,
    read_tenant_template,
    read_type_template,
)
from hooksaga.core.public_url import checked_public_url
from hooksaga.core.retention import RetentionPolicy
from hooksaga.core.saga import RetryPolicy
from hooksaga.core.secrets_keys import is_key, split_keys

PREFIX = "HOOKSAGA_"

LEASE_MARGIN_SECONDS = 5
"""Minimum time by which a lease exceeds the longest POST, so that its result can be written."""

MAX_SUBSCRIPTION_TIMEOUT_SECONDS = 30

MIN_LEASE_SECONDS = MAX_SUBSCRIPTION_TIMEOUT_SECONDS + LEASE_MARGIN_SECONDS


_INTAKE_READERS: dict[str, Callable[[str], object]] = {
    "intake_event_type": read_type_template,
    "intake_tenant": read_tenant_template,
    "intake_ordering_key": read_key_template,
    "intake_attributes": read_attribute_pointers,
}

_API_KEY = re.compile(r"[!-~]{16,200}")


class InvalidSettings(ValueError):
    """One line per invalid variable: its name and the rule."""


class Settings(BaseSettings):
    """Each field is the variable HOOKSAGA_<NAME>. Seconds may be fractions."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="ignore", frozen=True, env_ignore_empty=True, allow_inf_nan=False
    )

    database_url: SecretStr | None = None
    database_host: str | None = None
    database_port: int = Field(default=5432, ge=1, le=65535)
    database_name: str = "hooksaga"
    database_ca_file: Path | None = None
    database_secret_arn: str | None = None
    prepared_statements: bool | None = None
    data_dir: Path = Path(".hooksaga")
    api_key: SecretStr | None = None
    public_url: str | None = None

    base_delay_seconds: float = Field(default=30, gt=0, le=3600)
    max_delay_seconds: float = Field(default=3600, gt=0, le=86_400)
    max_retry_limit: int = Field(default=5, ge=1, le=50)
    retry_jitter: float = Field(default=0.1, ge=0, le=1)

    breaker_failures: int = Field(default=10, ge=1, le=1000)
    probe_seconds: float = Field(default=5, ge=0.05, le=600)

    http_timeout_seconds: float = Field(default=15, ge=0.05, le=MAX_SUBSCRIPTION_TIMEOUT_SECONDS)
    http_connect_timeout_seconds: float = Field(default=5, ge=0.05, le=30)
    lease_seconds: float = Field(default=60, gt=0, le=900)
    max_lost_leases: int = Field(default=5, ge=1, le=100)

    disable_after_days: float = Field(default=5, ge=0, le=365)

    retention_days: float | None = Field(default=None, ge=1, le=36_500)
    dead_letter_days: float | None = Field(default=None, ge=1, le=36_500)
    payload_days: float | None = Field(default=None, ge=1, le=36_500)
    event_days: float | None = Field(default=None, ge=1, le=36_500)

    egress_allow: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode] = ()
    ca_file: Path | None = None
    processes: int | None = Field(default=None, ge=1, le=2)
    concurrency: int = Field(default=512, ge=2, le=10_000)
    redispatch_seconds: float = Field(default=900, ge=1, le=86_400)
    payload_max_bytes: int = Field(default=262_144, ge=1, le=1_048_576)
    unknown_event_types: Literal["accept", "reject"] = "accept"
    secrets_key: SecretStr | None = None
    secrets_key_arn: str | None = None

    intake_event_type: str = DEFAULT_EVENT_TYPE
    intake_tenant: str | None = None
    intake_ordering_key: str | None = None
    intake_attributes: str | None = None

    intake_queue_url: str | None = None
    intake_redrive_queue_url: str | None = None
    routing_queue_url: str | None = None
    orchestration_queue_url: str | None = None
    delivery_queue_url: str | None = None
    delivery_slow_queue_url: str | None = None
    dead_tasks_queue_url: str | None = None

    @field_validator("egress_allow", mode="before")
    @classmethod
    def _read_networks(cls, value: Any) -> Any:
        return AddressPolicy.parse(value).allow if isinstance(value, str) else value

    @field_validator("public_url")
    @classmethod
    def _is_public_url(cls, value: str | None) -> str | None:
        return None if value is None else checked_public_url(value)

    @field_validator("database_url")
    @classmethod
    def _is_libpq_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not is_conninfo(value.get_secret_value()):
            raise ValueError("must be a libpq URL, such as postgresql://owner:password@host/hooksaga")
        return value

    @field_validator("api_key")
    @classmethod
    def _can_be_sent(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _API_KEY.fullmatch(value.get_secret_value()):
            raise ValueError("must have 16 to 200 printable ASCII characters without blanks")
        return value

    @field_validator("lease_seconds")
    @classmethod
    def _outlives_every_post(cls, value: float) -> float:
        if value < MIN_LEASE_SECONDS:
            raise ValueError(
                f"must be at least {MIN_LEASE_SECONDS}: the longest timeout that a subscription may have, and "
                f"{LEASE_MARGIN_SECONDS} seconds to write its result"
            )
        return value

    @field_validator("ca_file", "database_ca_file")
    @classmethod
    def _is_readable(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError("there is no such file")
        return value

    @field_validator("secrets_key")
    @classmethod
    def _are_keys(cls, value: SecretStr | None) -> SecretStr | None:
        for key in _split(value):
            if not is_key(key):
                raise ValueError("must be keys of 32 bytes in URL-safe base64, separated by commas")
        return value

    @field_validator("intake_event_type", "intake_tenant", "intake_ordering_key", "intake_attributes")
    @classmethod
    def _is_rule_of_intake(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None:
            _INTAKE_READERS[str(info.field_name)](value)
        return value

    @model_validator(mode="after")
    def _defaults_follow(self) -> "Settings":
        """Adjust defaults to the variables that are set, so that setting one variable never conflicts with another's
        default."""
        self._follow(
            "http_timeout_seconds", max(self.http_timeout_seconds, self.http_connect_timeout_seconds)
        )
        self._follow(
            "http_connect_timeout_seconds", min(self.http_connect_timeout_seconds, self.http_timeout_seconds)
        )
        self._follow("base_delay_seconds", min(self.base_delay_seconds, self.max_delay_seconds))
        self._follow("retention_days", self.event_days)
        self._follow("redispatch_seconds", max(self.redispatch_seconds, 2 * self.lease_seconds))
        return self

    def _follow(self, name: str, value: float | None) -> None:
        if name not in self.model_fields_set:
            object.__setattr__(self, name, value)  # bypasses `frozen`, and the field still counts as not set

    @model_validator(mode="after")
    def _times_are_in_order(self) -> "Settings":
        if self.http_connect_timeout_seconds > self.http_timeout_seconds:
            raise ValueError(
                "HOOKSAGA_HTTP_CONNECT_TIMEOUT_SECONDS must not exceed HOOKSAGA_HTTP_TIMEOUT_SECONDS"
            )
        return self

    @model_validator(mode="after")
    def _ages_are_in_order(self) -> "Settings":
        for name, days in (("DEAD_LETTER_DAYS", self.dead_letter_days), ("EVENT_DAYS", self.event_days)):
            if days is not None and days < (self.retention_days or 0):
                raise ValueError(
                    f"HOOKSAGA_{name} must not be shorter than HOOKSAGA_RETENTION_DAYS: deliveries are deleted first"
                )
        if self.event_days is not None and (self.payload_days or 0) > self.event_days:
            raise ValueError("HOOKSAGA_PAYLOAD_DAYS must not exceed HOOKSAGA_EVENT_DAYS")
        return self

    @property
    def retention_policy(self) -> RetentionPolicy:
        def age(days: float | None) -> timedelta | None:
            return None if days is None else timedelta(days=days)

        return RetentionPolicy(
            deliveries=age(self.retention_days),
            dead_letters=age(self.dead_letter_days),
            payloads=age(self.payload_days),
            events=age(self.event_days),
        )

    @property
    def retry_policy(self) -> RetryPolicy:
        return RetryPolicy(
            max_retry_limit=self.max_retry_limit,
            base_delay_seconds=self.base_delay_seconds,
            max_delay_seconds=self.max_delay_seconds,
            jitter=self.retry_jitter,
            breaker_failures=self.breaker_failures,
            probe_seconds=self.probe_seconds,
        )

    @property
    def health_policy(self) -> HealthPolicy:
        return HealthPolicy(self.disable_after_days * 86_400)

    @property
    def address_policy(self) -> AddressPolicy:
        return AddressPolicy(self.egress_allow)

    @property
    def intake_rules(self) -> IntakeRules:
        """Compile the settings of the intake."""
        tenant, key, attributes = self.intake_tenant, self.intake_ordering_key, self.intake_attributes
        return IntakeRules(
            read_type_template(self.intake_event_type),
            None if tenant is None else read_tenant_template(tenant),
            None if key is None else read_key_template(key),
            None if attributes is None else read_attribute_pointers(attributes),
        )

    @property
    def queue_urls(self) -> dict[str, str]:
        """The URLs that are set, by queue name."""
        names = [name for name in Settings.model_fields if name.endswith("_queue_url")]
        return {name.removesuffix("_queue_url"): url for name in names if (url := getattr(self, name))}

    @property
    def secrets_keys(self) -> list[str]:
        """Return the keys for subscription secrets, the encrypting one first; empty if none is set."""
        return _split(self.secrets_key)


def read_settings(**overrides: Any) -> Settings:
    """Read the settings from the environment. Raises InvalidSettings, whose message never contains a value."""
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise InvalidSettings(
            "\n".join(_explain(problem) for problem in error.errors(include_input=False))
        ) from None


def _explain(problem: Any) -> str:
    message = str(problem["msg"]).removeprefix("Value error, ")
    name = "_".join(str(part) for part in problem["loc"][:1])
    return f"{PREFIX}{name.upper()}: {message}" if name else message


def _split(value: SecretStr | None) -> list[str]:
    return split_keys(value.get_secret_value()) if value else []
