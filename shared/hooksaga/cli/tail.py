"""`hooksaga events tail`: prints one line per finished attempt, each exactly once."""

import time
from typing import TYPE_CHECKING, Any

import typer

from hooksaga.cli.api_access import Api
from hooksaga.cli.attempts import PATH, AttemptFilter, attempt_of, duration_of, result_of
from hooksaga.cli.signals import interrupt_on_sigterm
from hooksaga.cli.terminal import echo_error, printable, show_json, until_interrupted

if TYPE_CHECKING:
    from hooksaga.local.api_client import ApiClient

PAGE = 250
POLL_SECONDS = 1.0
REMEMBERED_SECONDS = 300
"""Responses repeat attempts for at most a minute."""


def tail(*, wanted: AttemptFilter, api: Api) -> None:
    """Follow deliveries: print a line for each finished attempt, until Ctrl-C.

    With --json each line is a JSON object. While the API is unavailable the command retries and misses nothing.
    """
    interrupt_on_sigterm()
    client = api.connect()
    follower = Follower(client, wanted.parameters())

    def show_new() -> None:
        for one in follower.poll():
            if api.as_json:
                show_json(one)
            else:
                typer.secho(_line(one), fg="yellow" if one["error_code"] else None)

    until_interrupted(show_new, POLL_SECONDS)


class Follower:
    """Polls for finished attempts and drops repeats."""

    def __init__(self, client: "ApiClient", wanted: dict[str, Any]) -> None:
        self._client = client
        self._wanted = wanted
        self._cursor: str | None = None
        self._seen: dict[int, float] = {}
        self._is_away = False

    def poll(self) -> list[dict[str, Any]]:
        """Return new attempts, oldest first; none while the API is unavailable. Raises ApiError for other errors."""
        from hooksaga.local.api_client import ApiError

        new: list[dict[str, Any]] = []
        try:
            while self._take(new):
                pass
        except ApiError as error:
            if self._cursor is None or 0 < error.status < 500:
                raise
            if not self._is_away:
                echo_error(printable(f"the API is unavailable: {error}; retrying"))
            self._is_away = True
        else:
            self._is_away = False
        self._forget()
        return new

    def _take(self, new: list[dict[str, Any]]) -> bool:
        params = {**self._wanted, "limit": PAGE, "cursor": self._cursor}
        answer = self._client.call("GET", f"{PATH}/follow", params=params)
        for one in answer["items"]:
            if one["id"] not in self._seen:
                new.append(one)
            self._seen[one["id"]] = time.monotonic()
        self._cursor = answer["next"]
        return bool(answer["more"])

    def _forget(self) -> None:
        oldest = time.monotonic() - REMEMBERED_SECONDS
        self._seen = {number: at for number, at in self._seen.items() if at > oldest}


def _line(one: dict[str, Any]) -> str:
    parts = (
        one["finished_at"][11:23] + "Z",
        f"{one['event_type']} -> subscription {one['subscription_id']}",
        f"attempt {attempt_of(one)} ({one['trigger']})",
        result_of(one),
        duration_of(one),
        one["event_id"],
    )
    return printable("  ".join(part for part in parts if part))
