"""Logins to the database: roles, addresses, connections."""

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from hooksaga.adapters import libpq, session_settings
from hooksaga.adapters.row_mapping import ADAPTERS


class Role(StrEnum):
    """The database roles: one per function, and one for dashboards. OWNER is the user in the database URL."""

    INGEST = "event_ingest_writer"
    ROUTER = "router_worker"
    ORCHESTRATOR = "saga_orchestrator"
    DELIVERY = "job_worker"
    LEASE_CLEANER = "lease_cleaner"
    HEALTH_MONITOR = "endpoint_health_monitor"
    SUBSCRIPTIONS = "subscription_admin"
    ADMIN = "dead_letter_operator"
    RETENTION = "retention_worker"
    OBSERVER = "observer"
    OWNER = "owner"


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Address of the database. prepare: use server-side prepared statements; False behind a transaction pooler.

    mint_password creates an IAM token, which is a user's password for one connection. With it no role has a password.
    """

    url: str
    prepare: bool = False
    connect_timeout_seconds: int = 5
    unit_timeout_seconds: float = 40
    mint_password: Callable[[str], str] | None = None


def role_password(owner_password: str, role: Role) -> str:
    """Derive the role's password from the owner's, which it does not reveal: an HMAC-SHA256 of the role's name."""
    digest = hmac.new(owner_password.encode(), f"hooksaga:{role}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode()


def role_conninfo(address: DatabaseAddress, role: Role) -> str:
    """Return the libpq connection string of the role. Dead peers are detected within about 15 s."""
    login: dict[str, Any] = {}
    if role is not Role.OWNER and libpq.user_of(address.url) != role:
        login["user"] = role.value
        if address.mint_password:
            login["password"] = address.mint_password(role.value)
        elif owners := libpq.owner_password(address.url):
            login["password"] = role_password(owners, role)
    return libpq.conninfo(
        address.url,
        options=""
        if role is Role.OWNER
        else session_settings.as_options(session_settings.of_role(role.value)),
        application_name=f"hooksaga {role}",
        connect_timeout=address.connect_timeout_seconds,
        **login,
    )


def owner_conninfos(address: DatabaseAddress) -> list[str]:
    """Return the owner's connection strings, in the order in which to try them.

    With IAM logins there are two, because RDS decides which one it takes: a user who may administer a member of
    `rds_iam` is taken for a member too, and then RDS refuses its password (decision 101).
    """
    by_password = role_conninfo(address, Role.OWNER)
    owner = libpq.user_of(address.url)
    if address.mint_password is None or owner is None:
        return [by_password]
    return [make_conninfo(by_password, password=address.mint_password(owner)), by_password]


class WatchedConnection(AsyncConnection[Any]):
    """A connection that records how many answers the current unit received, and whether it may have committed."""

    answers = 0
    may_have_committed = False
    begins = False

    def start_unit(self) -> None:
        self.answers, self.may_have_committed, self.begins = 0, False, False

    async def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Like psycopg's wait. A statement outside a transaction commits by itself, except BEGIN."""
        if self.info.transaction_status == psycopg.pq.TransactionStatus.IDLE and not self.begins:
            self.may_have_committed = True
        answer = await super().wait(gen, *args, **kwargs)
        self.answers += 1
        return answer

    def has_ended(self) -> bool:
        """Return whether the peer has closed the connection or announced it. Reads only what has already arrived."""
        try:
            self.pgconn.consume_input()  # the server's last message
            self.pgconn.consume_input()  # and the end of the stream
        except psycopg.Error:
            return True
        return self.closed

    def can_only_be_read(self) -> bool:
        """Return whether the server reported itself read-only with its last answer. After a failover the old server
        may answer reads from stale rows without an error, and a polling unit would never find work again."""
        return b"on" in [self.pgconn.parameter_status(name) for name in _READ_ONLY_PARAMETERS]


_READ_ONLY_PARAMETERS = (b"default_transaction_read_only", b"in_hot_standby")
"""Settings whose changes PostgreSQL 14 and later report without a query."""


async def connect_as(address: DatabaseAddress, role: Role) -> WatchedConnection:
    """Open a connection in autocommit mode. Raises psycopg.OperationalError."""
    return await WatchedConnection.connect(
        role_conninfo(address, role),
        autocommit=True,
        prepare_threshold=2 if address.prepare else None,
        context=ADAPTERS,
    )
