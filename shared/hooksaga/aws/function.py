"""State of a Lambda function between invocations, and the runner of its coroutine.

Nothing is created at import: clients and connections are created on first use and kept. A connection is checked before
its first use in an invocation, because the process may have been frozen since the last one.
"""

import asyncio
import functools
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Self

from hooksaga.adapters import libpq
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
"""Seconds that a function reserves for writing results and its response."""

MIN_UNIT_SECONDS = 5
"""Minimum time of a unit of work: a slow start may shorten the first invocation, not the later ones."""

Event = dict[str, Any]


SECONDS_FOR_ONE_BATCH = 8.0
"""With less time left, a function that works in batches begins no other."""


class Invocation:
    """One event and its time limit. The context is None if none is given, as in a test.

    is_first: the first of its process, whose start may have taken some of the function's time.
    """

    def __init__(self, event: Event, context: Any, *, is_first: bool = False) -> None:
        self.event = event
        self.is_first = is_first
        self._context = context

    @property
    def is_timed(self) -> bool:
        return self._context is not None

    def seconds_left(self) -> float:
        """Return the seconds until the function must end; a large number if the invocation is not timed."""
        if self._context is None:
            return 60.0
        return self._context.get_remaining_time_in_millis() / 1000 - DEADLINE_MARGIN_SECONDS


class Function:
    """Resources of one function. `role` is the only database role that it logs in as."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self._loop: asyncio.AbstractEventLoop | None = None
        self._metrics = EmfMetrics()
        self._longest_unit_seconds = math.inf

    def run(self, handle: Callable[[Self, Invocation], Awaitable[Any]], event: Event, context: Any) -> Any:
        """Run the coroutine on the loop that this process keeps, and return its result.

        The loop does not run between invocations, so nothing runs while the process is frozen. After an error, no
        task of this invocation continues into the next one.
        """
        invocation = Invocation(event, context, is_first=self._loop is None)
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._longest_unit_seconds = _longest_unit_seconds(invocation)
        log_in_context(context, is_first=invocation.is_first)
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
        """Database address. Its units of work end before the invocation, so that callers learn of a database outage."""
        address = function_address(self.settings)
        seconds = min(address.unit_timeout_seconds, self._longest_unit_seconds)
        return replace(address, unit_timeout_seconds=seconds)

    @functools.cached_property
    def session(self) -> Session:
        return Session(self.address, self.role)

    @functools.cached_property
    def queues(self) -> Queues:
        return Queues({Queue(name): url for name, url in self.settings.queue_urls.items()})


def log_in_context(context: Any, *, is_first: bool) -> None:
    """Add the invocation to each following line of the log, under the names that Powertools gives its parts."""
    logger.append_keys(
        cold_start=is_first,
        function_version=getattr(context, "function_version", None),
        function_request_id=getattr(context, "aws_request_id", None),
    )


def _longest_unit_seconds(first: Invocation) -> float:
    """Return the longest unit's seconds: a first invocation starts with the whole timeout, which no variable holds."""
    return max(first.seconds_left(), MIN_UNIT_SECONDS)


async def _as_coroutine(answer: Awaitable[Any]) -> Any:
    return await answer


async def _cancel_the_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def check_times(settings: Settings, invocation: Invocation) -> None:
    """Check that the longest POST < the function's time for it < the lease.

    Raises InvalidSettings: a function with less time would hand such jobs back forever, and one with more time could
    still run a POST whose lease another worker holds. A process that started late has less time once, whatever the
    settings: it hands unfinished jobs back, and only its next invocation shows how much time the function has.
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
    """Return the database address of a function: a URL, or a host with a token per login, and for migrate the owner's
    secret as well.

    Raises InvalidSettings when none of the three is set.
    """
    if settings.database_url is not None:
        return DatabaseAddress(settings.database_url.get_secret_value(), bool(settings.prepared_statements))
    if settings.database_secret_arn is not None:
        given = settings.model_fields_set
        url = database_url_from_secret(
            settings.database_secret_arn,
            host=settings.database_host,
            port=settings.database_port if "database_port" in given else None,
            dbname=settings.database_name if "database_name" in given else None,
        )
    elif settings.database_host is not None:
        url = f"host={settings.database_host} port={settings.database_port} dbname={settings.database_name}"
    else:
        raise InvalidSettings("HOOKSAGA_DATABASE_URL, _DATABASE_HOST or _DATABASE_SECRET_ARN must be set")
    host, port = libpq.place_of(url)
    return DatabaseAddress(
        url + _tls_options(settings),
        bool(settings.prepared_statements),
        mint_password=lambda user: rds_login_token(host, port, user),
    )


def _tls_options(settings: Settings) -> str:
    """Return TLS options that always verify the server's certificate and name, by the given bundle or the system's."""
    root = settings.database_ca_file or "system"
    return f" sslmode=verify-full sslrootcert={root}"
