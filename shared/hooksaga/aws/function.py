"""State of a Lambda function between invocations, and the runner of its coroutine.

Nothing is made at import: clients and connections are made on first use and kept warm. A connection is asked for a
sign of life before its first use in an invocation, because the process may have been frozen since the last.
"""

import asyncio
import functools
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Self

from hooksaga.adapters.aws_secrets import database_url_from_secret, rds_login_token
from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.adapters.queues import Queue, Queues
from hooksaga.aws.emf import EmfMetrics
from hooksaga.runtime.settings import (
    MAX_SUBSCRIPTION_TIMEOUT_SECONDS,
    InvalidSettings,
    Settings,
    read_settings,
)
from hooksaga.runtime.telemetry import logger, measure_with

DEADLINE_MARGIN_SECONDS = 2
"""Seconds that a function reserves to write results and answer."""

SHORTEST_UNIT_SECONDS = 5
"""What a unit of work has at the least: a slow start may take from the first invocation, not from those after it."""

Event = dict[str, Any]


class Invocation:
    """One event, and how long it may take. The context is None where none is given, as in a test.

    is_first: of its process, whose start may have taken some of the function's time.
    """

    def __init__(self, event: Event, context: Any, *, is_first: bool = False) -> None:
        self.event = event
        self.is_first = is_first
        self._context = context

    @property
    def is_timed(self) -> bool:
        """Return whether somebody counts the time of this invocation."""
        return self._context is not None

    def seconds_left(self) -> float:
        """Until the function must be done; generous where nobody counts."""
        if self._context is None:
            return 60.0
        return self._context.get_remaining_time_in_millis() / 1000 - DEADLINE_MARGIN_SECONDS


class Function:
    """One function's resources. `role` is the only one that it logs in as."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self._loop: asyncio.AbstractEventLoop | None = None
        self._metrics = EmfMetrics()
        self._longest_unit_seconds = math.inf

    def run(self, handle: Callable[[Self, Invocation], Awaitable[Any]], event: Event, context: Any) -> Any:
        """Run the coroutine on the loop that this process keeps, and give its answer.

        The loop stands still between invocations, so nothing runs while the process is frozen. After an error no
        task of this invocation is left over for the next one.
        """
        invocation = Invocation(event, context, is_first=self._loop is None)
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._longest_unit_seconds = _longest_unit_seconds(invocation)
        logger.append_keys(function_request_id=getattr(context, "aws_request_id", None))
        measure_with(self._metrics)
        self.session.check_before_next_use()
        try:
            return self._loop.run_until_complete(_as_coroutine(handle(self, invocation)))
        except BaseException:
            self._loop.run_until_complete(_cancel_the_others())
            raise
        finally:
            self._metrics.flush()

    @functools.cached_property
    def settings(self) -> Settings:
        return read_settings()

    @functools.cached_property
    def address(self) -> DatabaseAddress:
        """A unit that begins with an invocation ends before it: the caller is told that the database is away."""
        address = function_address(self.settings)
        seconds = min(address.unit_timeout_seconds, self._longest_unit_seconds)
        return replace(address, unit_timeout_seconds=seconds)

    @functools.cached_property
    def session(self) -> Session:
        return Session(self.address, self.role)

    @functools.cached_property
    def queues(self) -> Queues:
        return Queues({Queue(name): url for name, url in self.settings.queue_urls.items()})


def _longest_unit_seconds(first: Invocation) -> float:
    """A process's first invocation begins with the function's whole timeout, which no variable tells."""
    return max(first.seconds_left(), SHORTEST_UNIT_SECONDS)


async def _as_coroutine(answer: Awaitable[Any]) -> Any:
    return await answer


async def _cancel_the_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def check_times(settings: Settings, invocation: Invocation) -> None:
    """The longest POST < what this function has for it < the lease.

    Raises InvalidSettings: a function with less time would hand such jobs back for ever, and one with more could
    still be at a POST whose lease is another's. A process that started late has less time once, whatever the settings
    are: it hands back what it could not finish, and only its next invocation tells how much time the function has.
    """
    if not invocation.is_timed:
        return
    left, longest = invocation.seconds_left(), MAX_SUBSCRIPTION_TIMEOUT_SECONDS
    if left + DEADLINE_MARGIN_SECONDS > settings.lease_seconds:
        raise InvalidSettings(
            f"HOOKSAGA_LEASE_SECONDS must be over the function's timeout, not {settings.lease_seconds:g}"
        )
    if left <= longest and invocation.is_first:
        logger.warning("less time than a POST may take, as after a late start", extra={"seconds_left": left})
    elif left <= longest:
        raise InvalidSettings(
            f"the function's timeout must be over {longest + DEADLINE_MARGIN_SECONDS:g} s: the longest timeout of "
            f"a POST, and {DEADLINE_MARGIN_SECONDS} s to write its result"
        )


def function_address(settings: Settings) -> DatabaseAddress:
    """The database of a function: a URL; or a host, with a token for each login; or the owner's secret.

    Raises InvalidSettings when none of the three is set.
    """
    if settings.database_url is not None:
        return DatabaseAddress(settings.database_url.get_secret_value(), bool(settings.prepared_statements))
    if settings.database_secret_arn is not None:
        owner = database_url_from_secret(
            settings.database_secret_arn, host=settings.database_host, dbname=settings.database_name
        )
        return DatabaseAddress(owner + _tls_options(settings))
    if settings.database_host is None:
        raise InvalidSettings("HOOKSAGA_DATABASE_URL, _DATABASE_HOST or _DATABASE_SECRET_ARN must be set")
    host, port = settings.database_host, settings.database_port
    return DatabaseAddress(
        f"host={host} port={port} dbname={settings.database_name}" + _tls_options(settings),
        mint_password=lambda user: rds_login_token(host, port, user),
    )


def _tls_options(settings: Settings) -> str:
    """The server's certificate and name are always verified, against the given bundle or the system's."""
    root = settings.database_ca_file or "system"
    return f" sslmode=verify-full sslrootcert={root}"
