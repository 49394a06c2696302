"""Proxies and passwords in the environment of the process have no effect on deliveries."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hooksaga.adapters.http_sender import HttpSender
from tests.delivery.attempts import post
from tests.delivery.hostile_receiver import Authority, receiver, well

pytestmark = [pytest.mark.timeout(10), pytest.mark.hostile("The environment")]

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")


@pytest.mark.parametrize("variable", [*PROXIES, "NO_PROXY"])
async def test_proxies_of_the_environment_are_never_used(
    make_sender: Callable[..., HttpSender],
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    """With NO_PROXY all the others are set too, and the receiver is not excepted."""
    async with receiver(well, authority.tls()) as receiving, receiver(well, None) as proxy:
        for name in PROXIES if variable == "NO_PROXY" else (variable,):
            monkeypatch.setenv(name, f"http://user:pass@127.0.0.1:{proxy.port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "example.com")
        outcome = await post(make_sender(), receiving.url())
        assert (outcome.error_code, len(receiving.requests), proxy.connections) == (None, 1, 0)
        assert receiving.requests[0].header("proxy-authorization") is None


async def test_passwords_of_netrc_are_never_sent(
    make_sender: Callable[..., HttpSender],
    authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login canary password canary\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with receiver(well, authority.tls()) as receiving:
        assert (await post(make_sender(), receiving.url())).error_code is None
        assert receiving.requests[0].header("authorization") is None
