"""The command for curl, run by real shells against a real server: it sends what was sent, to the byte."""

import http.server
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hooksaga.core.curl import curl_command, secret_variables

SHELLS = [shell for shell in ("bash", "dash", "zsh") if shutil.which(shell)]
BODIES = [
    "{}",
    '{"name": "O\'Brien & Söhne", "cost": "$5 `id` $(id) !!", "path": "C:\\\\temp\\\\n"}',
    '\n{\n  "lines": ["a\\tb",\t"c"] }\n\n',
    "@/etc/passwd",
    "'",
    '{"emoji": "\U0001f600", "percent": "100%s%d"}',
    '{"large": "' + "x'" * 120_000 + '"}',
]
HEADERS = {
    "content-type": "application/json",
    "webhook-id": "evt_01",
    "webhook-signature": "***",
    "x-it's": 'a\'b "c" $HOME',
    "9-of`them`": "***",
}


class Server:
    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        got = self.got

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, name="server of curl")
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?a=1&b=it's"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.server.shutdown()
    made.thread.join(30)
    made.server.server_close()


def run(shell: str, command: str, **variables: str) -> str:
    """As pasted: read from the shell's input."""
    path = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}
    done = subprocess.run(
        [shell], input=command + "\n", env={**path, **variables}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_pasted_command_sends_every_byte(server: Server, shell: str, body: str) -> None:
    answer = run(shell, curl_command(server.url, HEADERS, body), WEBHOOK_SIGNATURE="v1,abc=")
    assert "204" in answer.splitlines()[0]
    ((path, headers, sent),) = server.got
    assert sent == body.encode()
    assert path == "/hook?a=1&b=it's"
    assert headers["webhook-signature"] == "v1,abc="
    assert headers["x-it's"] == 'a\'b "c" $HOME'
    assert "9-of`them`" not in headers, "its variable is not set"
    assert not {"accept", "expect"} & set(headers)


def test_the_command_is_written_for_every_version_of_curl() -> None:
    """The curl of a test may take options in other letters too."""
    assert curl_command("https://a.example/?b=1", {"x-a": "1", "x-key": "***"}, "it's") == (
        "printf '%s' 'it'\"'\"'s' | \\\n"
        "  curl --http1.1 --include 'https://a.example/?b=1' \\\n"
        "  --header 'x-a: 1' \\\n"
        "  --header 'x-key: '\"$X_KEY\" \\\n"
        "  --header 'accept:' --header 'expect:' \\\n"
        "  --data-binary @-"
    )


def test_the_variables_of_secret_headers_are_named() -> None:
    assert secret_variables(HEADERS) == ["WEBHOOK_SIGNATURE", "_9_OF_THEM_"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_a_secret_comes_from_its_variable(server: Server) -> None:
    run("sh", curl_command(server.url, {"9-of`them`": "***"}, "{}"), _9_OF_THEM_="a 'secret' $x")
    assert server.got[0][1]["9-of`them`"] == "a 'secret' $x"
