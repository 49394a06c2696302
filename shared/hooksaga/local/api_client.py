"""API client of the command line, for this machine or a deployed stack.

It uses the standard library only: a command starts, sends one request and ends, and importing another client would take
longer than the rest.
"""

import json as json_text
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from hooksaga.local.raw_json import raw_members

CONNECT_SECONDS = 10.0
PAYLOADS = ("payload", "payload_snapshot")
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


class ApiError(Exception):
    """The API returned an error or was unreachable. The message is for the terminal.

    `status` is 0 and `code` empty without a response; `problem` is the problem document, if there was one.
    """

    def __init__(self, message: str, problem: Mapping[str, Any] | None = None, *, status: int = 0) -> None:
        super().__init__(message)
        self.problem = dict(problem or {})
        self.status = status
        self.code = str(self.problem.get("code", ""))


class Response(NamedTuple):
    """Status and body of a response."""

    status: int
    content: bytes


class ApiClient:
    """Client of one API with one key. Ignores proxies of the environment. Each request has a connection of its own."""

    def __init__(self, url: str, key: str, *, timeout_seconds: float = 60) -> None:
        self._url = url.rstrip("/")
        self._place = urlsplit(self._url)
        self._authorization = f"Bearer {key}"
        self._timeout_seconds = timeout_seconds

    def call(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """Return the JSON response, {} if empty; arguments as in `fetch`. Raises ApiError with the problem's text."""
        return self.read(self.fetch(method, path, **request))

    def read(self, answer: bytes) -> dict[str, Any]:
        """Return a response of `fetch` as an object in which the payload is unchanged JSON text. Raises ApiError for
        any other response."""
        try:
            members = raw_members((answer or b"{}").decode())
            return {
                name: text if name in PAYLOADS else json_text.loads(text) for name, text in members.items()
            }
        except (ValueError, RecursionError):
            wrong = f"what answers at {self._url} is not a hooksaga API; check --api-url"
            raise ApiError(wrong) from None

    def fetch(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the body of a 2xx response unchanged. Parameters that are None are omitted."""
        given = {name: value for name, value in (params or {}).items() if value is not None}
        body = content if json is None else json_text.dumps(json, allow_nan=False).encode()
        sent = {"authorization": self._authorization, "accept": "application/json"}
        sent.update({} if body is None else {"content-type": "application/json"})
        sent.update({name.lower(): value for name, value in (headers or {}).items()})
        target = self._place.path + path + (f"?{urlencode(given)}" if given else "")
        try:
            response = self._send(method, target, body, sent)
        except (OSError, HTTPException) as error:
            raise self._unreachable(error) from error
        except ValueError as error:  # a header or a path that HTTP does not allow
            raise ApiError(f"the request was not sent: {error}") from None
        if 200 <= response.status <= 299:
            return response.content
        raise _refusal(response)

    def _send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
        kind = HTTPSConnection if self._place.scheme == "https" else HTTPConnection
        connection = kind(self._place.hostname or "", self._place.port, timeout=CONNECT_SECONDS)
        try:
            connection.connect()
            connection.sock.settimeout(self._timeout_seconds)
            connection.request(method, target, body, dict(headers))
            answer = connection.getresponse()
            return Response(answer.status, answer.read())
        finally:
            connection.close()

    def _unreachable(self, error: Exception) -> ApiError:
        reason = str(error) or type(error).__name__
        is_local = self._place.hostname in LOCAL_HOSTS
        hint = "is `hooksaga up` running? Another address: --api-url" if is_local else "check --api-url"
        return ApiError(f"no answer from {self._url} ({reason}); {hint}, or HOOKSAGA_API_URL")


def _refusal(response: Response) -> ApiError:
    status = response.status
    try:
        problem: dict[str, Any] = json_text.loads(response.content)
        field = f"{problem['field']}: " if "field" in problem else ""
        message = f"{problem['code']} ({status}): {field}{problem['detail']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return ApiError(f"the answer was {status} without a problem document; check --api-url", status=status)
    return ApiError(message, problem, status=status)
