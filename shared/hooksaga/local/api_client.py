"""API client of the command line, for this machine or a deployed stack."""

import json as json_text
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx

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


class ApiClient:
    """Client of one API with one key. Ignores proxies of the environment."""

    def __init__(self, url: str, key: str, *, timeout_seconds: float = 60) -> None:
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(timeout_seconds, connect=CONNECT_SECONDS),
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
            wrong = f"what answers at {self._http.base_url} is not a hooksaga API; check --api-url"
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
        sent = {"content-type": "application/json"} if content is not None else {}
        sent.update({name.lower(): value for name, value in (headers or {}).items()})
        try:
            response = self._http.request(
                method, path, content=content, json=json, params=given, headers=sent
            )
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        if response.is_success:
            return response.content
        raise _refusal(response)

    def close(self) -> None:
        self._http.close()

    def _unreachable(self, error: httpx.TransportError) -> ApiError:
        reason = str(error) or type(error).__name__
        is_local = self._http.base_url.host in LOCAL_HOSTS
        hint = "is `hooksaga up` running? Another address: --api-url" if is_local else "check --api-url"
        return ApiError(f"no answer from {self._http.base_url} ({reason}); {hint}, or HOOKSAGA_API_URL")


def _refusal(response: httpx.Response) -> ApiError:
    status = response.status_code
    try:
        problem: dict[str, Any] = response.json()
        field = f"{problem['field']}: " if "field" in problem else ""
        message = f"{problem['code']} ({status}): {field}{problem['detail']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return ApiError(f"the answer was {status} without a problem document; check --api-url", status=status)
    return ApiError(message, problem, status=status)
