"""Configuration: everything from the environment, wrong values refused at start by the variable's name."""

from pathlib import Path

import pytest

from hooksaga.adapters.secret_box import generate_key
from hooksaga.core.saga import RetryPolicy
from hooksaga.runtime.settings import MIN_LEASE_SECONDS, InvalidSettings, Settings, read_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import os

    for name in list(os.environ):
        if name.upper().startswith("HOOKSAGA_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def refusal(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSettings) as refused:
        read_settings()
    return str(refused.value)


def test_the_defaults_are_those_of_the_documentation() -> None:
    settings = read_settings()
    assert settings.retry_policy == RetryPolicy(5, 30, 3600, 0.1)
    assert (settings.http_timeout_seconds, settings.http_connect_timeout_seconds) == (15, 5)
    assert (settings.lease_seconds, settings.max_lost_leases, settings.concurrency) == (60, 5, 512)
    assert (settings.redispatch_seconds, settings.payload_max_bytes) == (900, 262_144)
    assert (settings.data_dir, settings.database_url, settings.ca_file) == (Path(".hooksaga"), None, None)
    assert settings.secrets_keys == []
    assert settings.address_policy.allow == ()


def test_each_value_comes_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKSAGA_BASE_DELAY_SECONDS", "0.25")
    monkeypatch.setenv("HOOKSAGA_MAX_DELAY_SECONDS", "2")
    monkeypatch.setenv("HOOKSAGA_MAX_RETRY_LIMIT", "3")
    monkeypatch.setenv("HOOKSAGA_RETRY_JITTER", "0")
    monkeypatch.setenv("HOOKSAGA_EGRESS_ALLOW", "127.0.0.0/8, ::1/128")
    settings = read_settings()
    assert settings.retry_policy == RetryPolicy(3, 0.25, 2, 0)
    assert [str(network) for network in settings.egress_allow] == ["127.0.0.0/8", "::1/128"]


def test_an_empty_variable_is_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKSAGA_MAX_RETRY_LIMIT", "")
    monkeypatch.setenv("HOOKSAGA_SECRETS_KEY", "")
    settings = read_settings()
    assert (settings.max_retry_limit, settings.secrets_keys) == (5, [])


BAD_VALUES = [
    ("HOOKSAGA_BASE_DELAY_SECONDS", "0"),
    ("HOOKSAGA_BASE_DELAY_SECONDS", "-1"),
    ("HOOKSAGA_BASE_DELAY_SECONDS", "nan"),
    ("HOOKSAGA_BASE_DELAY_SECONDS", "inf"),
    ("HOOKSAGA_BASE_DELAY_SECONDS", "30s"),
    ("HOOKSAGA_MAX_DELAY_SECONDS", "0"),
    ("HOOKSAGA_MAX_RETRY_LIMIT", "0"),
    ("HOOKSAGA_MAX_RETRY_LIMIT", "51"),
    ("HOOKSAGA_MAX_RETRY_LIMIT", "2.5"),
    ("HOOKSAGA_RETRY_JITTER", "1.1"),
    ("HOOKSAGA_RETRY_JITTER", "-0.1"),
    ("HOOKSAGA_HTTP_TIMEOUT_SECONDS", "31"),
    ("HOOKSAGA_MAX_LOST_LEASES", "0"),
    ("HOOKSAGA_CONCURRENCY", "0"),
    ("HOOKSAGA_PAYLOAD_MAX_BYTES", "0"),
    ("HOOKSAGA_EGRESS_ALLOW", "localhost"),
    ("HOOKSAGA_EGRESS_ALLOW", "10.0.0.1/8"),
    ("HOOKSAGA_CA_FILE", "no-such-file.pem"),
    ("HOOKSAGA_SECRETS_KEY", "too-short"),
    ("HOOKSAGA_API_KEY", "short"),
    ("HOOKSAGA_API_KEY", "hs_0123456789 abcdef"),
    ("HOOKSAGA_API_KEY", "hs_0123456789äbcdef"),
]


@pytest.mark.parametrize(("name", "value"), BAD_VALUES)
def test_a_wrong_value_is_refused_by_the_variables_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    message = refusal(monkeypatch, **{name: value})
    assert message.startswith(f"{name}: ")
    assert len(message.splitlines()) == 1


def test_all_wrong_values_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, HOOKSAGA_MAX_RETRY_LIMIT="0", HOOKSAGA_CONCURRENCY="x")
    assert [line.split(":")[0] for line in message.splitlines()] == [
        "HOOKSAGA_MAX_RETRY_LIMIT",
        "HOOKSAGA_CONCURRENCY",
    ]


@pytest.mark.parametrize("name", ["HOOKSAGA_SECRETS_KEY", "HOOKSAGA_API_KEY"])
def test_a_refused_secret_is_not_repeated(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert "s3cr3t" not in refusal(monkeypatch, **{name: "s3cr3t"})


def test_secrets_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    key = generate_key()
    monkeypatch.setenv("HOOKSAGA_SECRETS_KEY", key)
    monkeypatch.setenv("HOOKSAGA_API_KEY", "hs_0123456789abcdef")
    monkeypatch.setenv("HOOKSAGA_DATABASE_URL", "postgresql://u:hunter2@h/d")
    shown = repr(read_settings())
    assert not [secret for secret in (key, "hs_0123", "hunter2") if secret in shown]


def test_several_keys_make_a_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [generate_key(), generate_key()]
    monkeypatch.setenv("HOOKSAGA_SECRETS_KEY", " , ".join(keys))
    assert read_settings().secrets_keys == keys


def test_a_lease_outlives_the_longest_post(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(monkeypatch, HOOKSAGA_LEASE_SECONDS="34").startswith("HOOKSAGA_LEASE_SECONDS: must be")
    monkeypatch.setenv("HOOKSAGA_LEASE_SECONDS", "35")
    assert read_settings().lease_seconds == 35


NUMBERS = sorted(
    (name, bound)
    for name, field in Settings.model_fields.items()
    for limit in field.metadata
    for bound in (getattr(limit, "ge", None), getattr(limit, "gt", None), getattr(limit, "le", None))
    if bound is not None and (name, bound) != ("lease_seconds", 0)
)


@pytest.mark.parametrize(("name", "bound"), [*NUMBERS, ("lease_seconds", MIN_LEASE_SECONDS)])
def test_one_variable_alone_is_never_refused_for_the_default_of_another(
    monkeypatch: pytest.MonkeyPatch, name: str, bound: float
) -> None:
    """Each at both ends of its range; where 0 itself is outside, a little more than 0."""
    is_open = any(getattr(limit, "gt", None) == bound for limit in Settings.model_fields[name].metadata)
    value = 0.001 if is_open else bound
    monkeypatch.setenv(f"HOOKSAGA_{name.upper()}", str(value))
    assert getattr(read_settings(), name) == value


@pytest.mark.parametrize(
    ("variables", "followed"),
    [
        ({"HTTP_TIMEOUT_SECONDS": "2"}, {"http_connect_timeout_seconds": 2}),
        ({"HTTP_CONNECT_TIMEOUT_SECONDS": "20"}, {"http_timeout_seconds": 20}),
        ({"HTTP_CONNECT_TIMEOUT_SECONDS": "3"}, {"http_timeout_seconds": 15}),
        ({"MAX_DELAY_SECONDS": "5"}, {"base_delay_seconds": 5}),
        ({"MAX_DELAY_SECONDS": "5", "BASE_DELAY_SECONDS": "7"}, {"base_delay_seconds": 7}),
        ({"LEASE_SECONDS": "900"}, {"redispatch_seconds": 1800}),
        ({"LEASE_SECONDS": "900", "REDISPATCH_SECONDS": "1"}, {"redispatch_seconds": 1}),
    ],
)
def test_defaults_follow_what_is_set(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], followed: dict[str, float]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"HOOKSAGA_{name}", value)
    settings = read_settings()
    assert {name: getattr(settings, name) for name in followed} == followed
    assert set(settings.model_dump(exclude_unset=True)) == {name.lower() for name in variables}


def test_connecting_takes_no_longer_than_the_whole_post(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(
        monkeypatch, HOOKSAGA_HTTP_TIMEOUT_SECONDS="3", HOOKSAGA_HTTP_CONNECT_TIMEOUT_SECONDS="4"
    )
    assert "HOOKSAGA_HTTP_CONNECT_TIMEOUT_SECONDS" in message
