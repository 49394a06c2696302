"""HOOKSAGA_PUBLIC_URL: what links may begin with, and which Host headers name the caller's own machine."""

import pytest

from hooksaga.aws.deployment import ApiSettings, Environment, InvalidDeployment
from hooksaga.core.public_url import checked_public_url, is_loopback, origin_of
from hooksaga.runtime.settings import InvalidSettings, read_settings


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://hooks.example.com", "https://hooks.example.com"),
        ("https://hooks.example.com/", "https://hooks.example.com"),
        ("HTTPS://Hooks.Example.com:8443/Webhooks/", "https://hooks.example.com:8443/Webhooks"),
        (
            "https://abc.execute-api.eu-central-1.amazonaws.com/api",
            "https://abc.execute-api.eu-central-1.amazonaws.com/api",
        ),
        ("https://[2606:4700::1]:8443", "https://[2606:4700::1]:8443"),
        ("https://hooks.example.com/MAX", "https://hooks.example.com/MAX"),
        ("http://LocalHost:9000", "http://localhost:9000"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://localhost:9000/", "http://localhost:9000"),
    ],
)
def test_an_address_of_browsers(given: str, kept: str) -> None:
    assert checked_public_url(given) == kept
    assert read_settings(public_url=given).public_url == kept


BAD = [
    "hooks.example.com",
    "http://hooks.example.com",
    "http://127.0.0.1.evil.example.com",
    "http://localhost/path",
    "ftp://hooks.example.com",
    "https://",
    "https://user@hooks.example.com",
    "https://hooks.example.com?x=1",
    "https://hooks.example.com/#x",
    "https://hooks.example.com/a b",
    "https://hooks.example.com\\x",
    "https://hooks..example.com",
    "javascript:alert(1)",
]


@pytest.mark.parametrize("given", BAD)
def test_anything_else_stops_the_start(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKSAGA_PUBLIC_URL", given)
    with pytest.raises(InvalidSettings, match="HOOKSAGA_PUBLIC_URL: must be https://HOST"):
        read_settings()
    with pytest.raises(InvalidDeployment, match="PUBLIC_URL"):
        Environment(name="x", api=ApiSettings(public_url=given))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8080"]
)
def test_a_host_of_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example.com",
        "127.0.0.1.evil.com",
        "localhost.evil.com",
        "127.0.0.1@evil.com",
        "localhost:80@evil.com",
        "localhost:",
        "localhost:80:80",
        "evil.com:80#localhost",
        "127.0.0.1/evil",
        "::1",
        "0.0.0.0",
        "127.0.0.1 ",
    ],
)
def test_a_host_of_another(host: str) -> None:
    assert not is_loopback(host)


def test_the_origin_is_as_browsers_say_it() -> None:
    assert origin_of("https://hooks.example.com/api") == "https://hooks.example.com"
    assert origin_of("https://hooks.example.com:443") == "https://hooks.example.com"
    assert origin_of("https://hooks.example.com:8443/api") == "https://hooks.example.com:8443"
    assert origin_of("http://localhost:80") == "http://localhost"
    assert origin_of("http://localhost:443") == "http://localhost:443"
