"""A server that admits users as Amazon RDS does: members of `rds_iam` by a token only, all others by a password only.

The rules are lines of a real server's pg_hba.conf, so the server decides who is a member. It cannot check tokens, and
RDS lets its administrator grant `rds_iam` without a right that would make him a member. A relay does these two things.
"""

import re
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hooksaga.local.postgres import EmbeddedPostgres
from tests.delivery.hostile_receiver import unused_port
from tests.sqs.postgres_login import CLEARTEXT_PASSWORD, exactly

OWNER, PASSWORD = "hooksaga_owner", "it is the owner's"

RULES = """
local all all trust
host all +rds_iam all reject
host all all all scram-sha-256
"""
"""The relay comes in by the first line, when the other two admit a user's password or refuse him as a member."""

ROLES = f"""
CREATE ROLE rds_iam NOLOGIN;
CREATE ROLE {OWNER} LOGIN CREATEROLE CREATEDB PASSWORD '{PASSWORD.replace("'", "''")}';
GRANT pg_signal_backend TO {OWNER};
"""

GRANT = re.compile(rb'GRANT "?rds_iam"? TO "?(\w+)"?')


@dataclass
class Rds:
    """`port` is the relay's. `tokens` holds the users of valid tokens, `admitted` the users and ways of logins."""

    superuser_url: str
    server_port: int
    port: int = 0
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    admitted: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def url(self) -> str:
        return make_conninfo(
            host="127.0.0.1",
            port=self.port,
            user=OWNER,
            password=PASSWORD,
            dbname="hooksaga",
            sslmode="disable",
            gssencmode="disable",
        )

    def start_afresh(self) -> None:
        """Leave an empty database, and of the roles only its owner and rds_iam."""
        self.tokens.clear()
        self.admitted.clear()
        elsewhere = make_conninfo(self.superuser_url, dbname="postgres")
        with psycopg.connect(elsewhere, autocommit=True) as superuser:
            superuser.execute("DROP DATABASE hooksaga WITH (FORCE)")
            roles = superuser.execute(
                "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_' AND NOT rolsuper ORDER BY rolname = %s",
                [OWNER],
            ).fetchall()
            for (role,) in roles:
                superuser.execute(f"DROP ROLE {role}".encode())
            superuser.execute(ROLES.encode())
            superuser.execute(f"CREATE DATABASE hooksaga OWNER {OWNER}".encode())

    def mint(self, user: str) -> str:
        token = f"token {len(self.tokens)}"
        self.tokens[token] = user
        return token

    def refusal(self, user: str, password: str) -> str:
        """Return what the server's rules say to a password; empty if they admit the user."""
        try:
            psycopg.connect(
                make_conninfo(self.url, port=self.server_port, user=user, password=password)
            ).close()
        except psycopg.OperationalError as error:
            return str(error)
        return ""

    def admits(self, user: str, password: str) -> bool:
        refusal = self.refusal(user, password)
        by_token = self.tokens.get(password) == user and "pg_hba.conf rejects connection" in refusal
        if by_token or not refusal:
            self.admitted.append((user, "token" if by_token else "password"))
        return by_token or not refusal

    def grant_as_administrator(self, sent: bytes) -> bytes:
        """Replace a grant of rds_iam, made beside, by a statement of the same length that does nothing."""
        if (grant := GRANT.search(sent)) is None:
            return sent
        with psycopg.connect(self.superuser_url, autocommit=True) as superuser:
            superuser.execute(f"GRANT rds_iam TO {grant[1].decode()}".encode())
        return sent.replace(grant[0], b"SET jit = off".ljust(len(grant[0])))


@contextmanager
def rds() -> Iterator[Rds]:
    """Run a server with the binaries of `postgres_build`."""
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-rds-"))
    server = EmbeddedPostgres(folder)
    try:
        with psycopg.connect(server.start(), autocommit=True) as superuser:
            superuser.execute("ALTER SYSTEM SET listen_addresses = '127.0.0.1'")
            port = unused_port()
            superuser.execute(f"ALTER SYSTEM SET port = {port}".encode())
        server.stop()
        (folder / "postgres" / "pg_hba.conf").write_text(RULES)
        running = Rds(server.start(), port)
        with _Relay(running) as relay:
            running.port = relay.port
            yield running
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


class _Relay:
    def __init__(self, rds: Rds) -> None:
        self._rds = rds
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> "_Relay":
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_one, args=(client,), daemon=True).start()

    def _serve_one(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            startup = _message(client)
            if len(startup) == 16:  # a CancelRequest
                self._upstream(startup).close()
                return
            words = startup[8:].split(b"\0")
            user = dict(zip(words[::2], words[1::2], strict=False))[b"user"].decode()
            client.sendall(CLEARTEXT_PASSWORD)
            client.recv(1)
            if not self._rds.admits(user, _message(client)[4:].rstrip(b"\0").decode()):
                text = f'SFATAL\0C28P01\0MPAM authentication failed for user "{user}"\0\0'.encode()
                client.sendall(b"E" + struct.pack("!I", len(text) + 4) + text)
                return
            with self._upstream(startup) as server:
                back = threading.Thread(target=_pipe, args=(server, client), daemon=True)
                back.start()
                _pipe(client, server, self._rds.grant_as_administrator)
                back.join(10)

    def _upstream(self, startup: bytes) -> socket.socket:
        place = conninfo_to_dict(self._rds.superuser_url)
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{place['host']}/.s.PGSQL.{self._rds.server_port}")
        server.sendall(startup)
        return server


def _pipe(
    source: socket.socket, target: socket.socket, change: Callable[[bytes], bytes] = lambda data: data
) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(change(data))
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


def _message(connection: socket.socket) -> bytes:
    head = exactly(connection, 4)
    return head + exactly(connection, struct.unpack("!I", head)[0] - 4)
