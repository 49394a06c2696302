"""The HTTP API from the command line: on this machine, or of a deployed stack."""

from collections.abc import Mapping
from typing import Any

import httpx


class ApiError(Exception):
    """The API refused, or could not be reached. The message is meant for the person at the terminal."""

    def __init__(self, message: str, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.problem = dict(problem or {})


class ApiClient:
    """One API with one key. Environment proxies are not used: the API is named on purpose."""

    def __init__(self, url: str, key: str, *, timeout_seconds: float = 60) -> None:
        self._http = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"authorization": f"Bearer {key}"},
            timeout=timeout_seconds,
            trust_env=False,
        )

    def call(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """The JSON answer, {} for none. Raises ApiError with what the problem says."""
        given = {name: value for name, value in (params or {}).items() if value is not None}
        sent = (
            {"content-type": "application/json", **(headers or {})}
            if content is not None
            else dict(headers or {})
        )
        try:
            response = self._http.request(
                method, path, content=content, json=json, params=given, headers=sent
            )
        except httpx.TransportError as error:
            raise ApiError(
                f"no answer from {self._http.base_url}: {error or type(error).__name__}"
            ) from error
        if response.is_success:
            return response.json() if response.content else {}
        raise _refusal(response)

    def close(self) -> None:
        self._http.close()


def _refusal(response: httpx.Response) -> ApiError:
    try:
        problem: dict[str, Any] = response.json()
        return ApiError(f"{problem['code']} ({response.status_code}): {problem['detail']}", problem)
    except (ValueError, KeyError, TypeError):
        return ApiError(f"the answer was {response.status_code} and no problem document")
