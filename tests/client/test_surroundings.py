"""Dependencies of the client, its environment variables, and its cleanup."""

import subprocess
import sys
from importlib.resources import files

import httpx
import pytest

from hooksaga.client import AsyncHooksagaClient, HooksagaClient
from hooksaga.client.access import access_to

URL, KEY = "https://hooks.example.com", "hs_key"

NOTHING_ELSE = """
import sys
import httpx
known = set(sys.modules)
import hooksaga.client
new = {name for name in set(sys.modules) - known if name.partition('.')[0] not in sys.stdlib_module_names}
print(sorted(name for name in new if name != 'hooksaga' and not name.startswith('hooksaga.client')))
"""

WITHOUT_HTTPX = """
import sys
sys.path[:] = [folder for folder in sys.path if 'site-packages' not in folder]
sys.path.append(PACKAGES)
import hooksaga.client
"""


def run(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-c", program], capture_output=True, text=True, timeout=60
    )


def test_it_imports_nothing_but_httpx() -> None:
    assert run(NOTHING_ELSE).stdout == "[]\n"


def test_without_httpx_it_says_what_to_install() -> None:
    package = files("hooksaga").joinpath("..")
    program = WITHOUT_HTTPX.replace("PACKAGES", repr(str(package)))
    assert (
        "ModuleNotFoundError: hooksaga.client needs httpx: pip install 'hooksaga[client]'"
        in run(program).stderr
    )


def test_type_checkers_take_its_types() -> None:
    assert files("hooksaga").joinpath("py.typed").is_file()


@pytest.mark.parametrize(
    ("url", "key", "rule"),
    [
        (None, KEY, "HOOKSAGA_API_URL"),
        ("hooks.example.com", KEY, "base_url"),
        ("ftp://hooks.example.com", KEY, "base_url"),
        ("https://user:word@hooks.example.com", KEY, "not have a user"),
        (f"{URL}?a=1", KEY, "query"),
        (URL, None, "HOOKSAGA_API_KEY"),
        (URL, "", "api_key"),
        (URL, "hs_key\r\nx: y", "api_key"),
        (URL, "hs key", "api_key"),
        (URL, "žluť", "api_key"),
    ],
)
def test_what_cannot_be_used_is_refused(url: str | None, key: str | None, rule: str) -> None:
    with pytest.raises(ValueError, match=rule) as refused:
        access_to(url, key, {})
    assert "žluť" not in str(refused.value)


def test_url_and_key_come_from_the_environment_unless_they_are_given() -> None:
    environment = {"HOOKSAGA_API_URL": f"{URL}/prod/", "HOOKSAGA_API_KEY": KEY}
    found = access_to(None, None, environment)
    assert (found.url, found.headers({})["authorization"]) == (f"{URL}/prod", f"Bearer {KEY}")
    assert access_to("http://127.0.0.1:1", "hs_other", environment).url == "http://127.0.0.1:1"
    assert KEY not in repr(found)


def test_the_blocking_client_closes_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKSAGA_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HOOKSAGA_API_KEY", KEY)
    with HooksagaClient() as client:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        client.send("a", 1)


async def test_the_async_client_closes_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKSAGA_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HOOKSAGA_API_KEY", KEY)
    async with AsyncHooksagaClient() as client:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        await client.send("a", 1)


async def test_a_client_of_the_callers_own_stays_open() -> None:
    with httpx.Client() as own:
        with HooksagaClient(URL, KEY, http_client=own):
            pass
        assert not own.is_closed
    async with httpx.AsyncClient() as own_async:
        async with AsyncHooksagaClient(URL, KEY, http_client=own_async):
            pass
        assert not own_async.is_closed
