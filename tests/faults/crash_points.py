"""Kills a process with SIGKILL at a named point: before or after a database write, a commit, a queue send, a POST.

Names are `before` or `after` and what is done: `write deliver.claim_jobs`, `commit orchestrate.start_due`,
`send to routing`, `POST of a delivery`. The points lie in the adapters that every stage goes through, so none can be
forgotten, and they are put there from outside, at the start of the process (tests/faults/injected). A folder tells
them what to do:

- `seen` gathers the names of all points that were passed, while it exists;
- `kill-at` holds one name: the first process that comes to it takes the file away and dies;
- `stall-at` holds one name: the first process that comes to it stands still there, its event loop with it, until the
  file `stalled` is gone;
- `kill-for` holds a text: every process that is about to POST a body with it dies, each time;
- `hoard-for` holds a text: every process that is about to POST a body with it takes memory until there is no more.
"""

import functools
import os
import re
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.faults.sabotage import MARK, from_environment

FOLDER_VARIABLE = "HOOKSAGA_FAULT_FOLDER"
CLOCK_VARIABLE = "HOOKSAGA_FAULT_CLOCK"
CGROUP_VARIABLE = "HOOKSAGA_FAULT_CGROUP"
ROOT = Path(__file__).resolve().parents[2]

_WRITES = re.compile(
    r"INSERT INTO|DELETE FROM|(?<!FOR )UPDATE \w+|"
    r"(create|revoke)_api_key\(|(requeue_dead_letter|resend_sagas|retry_now)\("
)
"""Statements that change rows, themselves or through a function."""


class FaultFolder:
    """The tests' side: arm a point, and see what was passed."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._seen = path / "seen"
        self._kill_at = path / "kill-at"
        self._kill_for = path / "kill-for"
        self._hoard_for = path / "hoard-for"
        self._stall_at = path / "stall-at"
        self._stalled = path / "stalled"
        self.environment = {
            FOLDER_VARIABLE: str(path),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent / "injected")]),
        }

    def record(self) -> None:
        """Note every point that is passed from now on."""
        self._seen.touch()

    def seen(self) -> list[str]:
        """The points that were passed since `record`, in their order, each once; recording ends."""
        names = self._seen.read_text().splitlines()
        self._seen.unlink()
        return list(dict.fromkeys(names))

    def arm(self, point: str) -> None:
        """The first process that comes to the point dies there."""
        _write_whole(self._kill_at, point)

    def arm_stall(self, point: str) -> None:
        """The first process that comes to the point stands still there."""
        _write_whole(self._stall_at, point)

    @property
    def is_stalled(self) -> bool:
        return self._stalled.exists()

    def end_stall(self) -> None:
        self._stalled.unlink()

    def poison(self, text: str) -> None:
        """Every process dies that is about to POST a body with this text."""
        self._kill_for.write_text(text)

    def hoard(self, text: str) -> None:
        """Every process takes memory without end that is about to POST a body with this text."""
        self._hoard_for.write_text(text)

    @property
    def has_struck(self) -> bool:
        """Whether some process has died at the point."""
        return not self._kill_at.exists()


def _write_whole(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(path)


def install() -> None:
    """Put the points into the adapters of this process. Called before anything of the product is imported."""
    folder = Path(os.environ[FOLDER_VARIABLE])
    _shift_clock()
    _join_control_group()
    from_environment()
    _point_writes(folder)
    _point_commits(folder)
    _point_sends(folder)


def _pass_point(folder: Path, name: str) -> None:
    try:
        if (folder / "kill-at").read_text() == name:
            (folder / "kill-at").rename(folder / f"killed-{os.getpid()}")
            os.kill(os.getpid(), signal.SIGKILL)
    except FileNotFoundError:
        pass
    _stand_still(folder, name)
    if (folder / "seen").exists():
        descriptor = os.open(folder / "seen", os.O_WRONLY | os.O_APPEND)
        os.write(descriptor, f"{name}\n".encode())
        os.close(descriptor)


def _stand_still(folder: Path, name: str) -> None:
    """Keep the thread, as a long calculation would: no task of this process goes on."""
    try:
        if (folder / "stall-at").read_text() != name:
            return
        (folder / "stall-at").rename(folder / "stalled")
    except FileNotFoundError:
        return
    while (folder / "stalled").exists():
        time.sleep(0.01)


def _around(folder: Path, call: Callable[..., Awaitable[Any]], name_of: Callable[..., str | None]) -> Any:
    @functools.wraps(call)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        name = name_of(*args)
        if name:
            _pass_point(folder, f"before {name}")
        answer = await call(*args, **kwargs)
        if name:
            _pass_point(folder, f"after {name}")
        return answer

    return wrapped


def _point_writes(folder: Path) -> None:
    from psycopg import AsyncCursor

    names = write_queries()

    def name_of(cursor: Any, query: Any = "", *_: Any) -> str | None:
        name = names.get(query) if isinstance(query, str) else None
        if name:
            cursor.connection.last_write = name
        return name and f"write {name}"

    AsyncCursor.execute = _around(folder, AsyncCursor.execute, name_of)


def write_queries() -> dict[str, str]:
    """The product's named statements that write, by their text."""
    from hooksaga.adapters.queries import QUERIES_DIR, load_queries

    return {
        text: f"{path.stem}.{name}"
        for path in sorted(QUERIES_DIR.glob("*.sql"))
        for name, text in load_queries(path.stem).items()
        if _WRITES.search(text)
    } | {MARK: "route_events.route_outbox"}


def _point_commits(folder: Path) -> None:
    from psycopg import AsyncTransaction

    begin = AsyncTransaction.__aenter__

    async def begun(self: Any) -> Any:
        """Forget earlier writes: a transaction that only reads has no crash point."""
        self.connection.last_write = None
        return await begin(self)

    def name_of(transaction: Any, failed: Any = None, *_: Any) -> str | None:
        written = getattr(transaction.connection, "last_write", None)
        return f"commit {written}" if written and failed is None else None

    AsyncTransaction.__aenter__ = begun
    AsyncTransaction.__aexit__ = _around(folder, AsyncTransaction.__aexit__, name_of)


def _point_sends(folder: Path) -> None:
    from hooksaga.adapters.http_sender import HttpSender
    from hooksaga.adapters.queues import Queues

    Queues.send = _around(folder, Queues.send, lambda _, queue, *__: f"send to {queue.value}")
    HttpSender.send = _around(folder, HttpSender.send, lambda _, request: _post(folder, request))


def _post(folder: Path, request: Any) -> str:
    with suppress(FileNotFoundError):
        if (folder / "kill-for").read_bytes() in request.body:
            os.kill(os.getpid(), signal.SIGKILL)
    with suppress(FileNotFoundError):
        if (folder / "hoard-for").read_bytes() in request.body:
            _take_all_memory()
    return "POST of a delivery" if "hooksaga-event-type" in request.headers else "POST of a challenge"


def _take_all_memory() -> None:
    """Ends with MemoryError, or with the process. What was taken is given back: the traceback would keep it."""
    hoard: list[bytes] = []
    try:
        while True:
            hoard.append(b"x" * (1 << 20))
    except MemoryError:
        hoard.clear()
        raise


def _shift_clock() -> None:
    """The clock of this process goes wrong by so many seconds; the database's does not."""
    offset = float(os.environ.get(CLOCK_VARIABLE, 0))
    right_time = time.time
    time.time = lambda: right_time() + offset


def _join_control_group() -> None:
    """Every process from its start, those that are started again too."""
    if group := os.environ.get(CGROUP_VARIABLE):
        (Path(group) / "cgroup.procs").write_text(str(os.getpid()))
