"""The text of docs/guarantees.md: every row was measured, the words around them are here."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.faults.promises import Promise, Tried

WIDTH = 120


@dataclass(frozen=True)
class Run:
    """One run of the suite. skipped: what could not be tried on this machine, and why."""

    made_of: str
    date: str
    minutes: float
    passed: int
    skipped: Sequence[str]


def page(rows: Iterable[Tried], run: Run) -> str:
    """The whole page; rows of one fault and outcome are one row."""
    counted = _counted(rows)
    by_promise = {promise: [row for row in counted if row.promise is promise] for promise in Promise}
    parts = [_HEAD, _facts(run), _summary(by_promise)]
    for promise, found in by_promise.items():
        if found:
            parts.append(f"## {promise}\n\n{_filled(_ABOUT[promise])}\n")
            parts += _tables(found)
    return "\n".join([*parts, _not_tried(run)])


def _counted(rows: Iterable[Tried]) -> list[Tried]:
    times: dict[tuple[Promise, str, str], int] = {}
    for row in rows:
        key = (row.promise, row.fault, row.outcome)
        times[key] = times.get(key, 0) + row.times
    return sorted(Tried(promise, fault, count, outcome) for (promise, fault, outcome), count in times.items())


def _facts(run: Run) -> str:
    skipped = (
        "none was skipped" if not run.skipped else f"{len(run.skipped)} could not be run there (see the end)"
    )
    text = f"Written on {run.date} by `make faults`, in {run.minutes:.0f} minutes: {run.made_of}. "
    return _filled(f"{text}{run.passed} tests passed, {skipped}.") + "\n"


def _summary(by_promise: dict[Promise, list[Tried]]) -> str:
    lines = ["| promise | faults | times struck | kept |", "|---|---|---|---|"]
    for promise, found in by_promise.items():
        if found and promise is not Promise.CAUGHT:
            anchor = re.sub(r"[^a-z0-9 -]", "", promise.lower()).replace(" ", "-")
            faults, times = len({row.fault for row in found}), sum(row.times for row in found)
            lines.append(f"| [{promise}](#{anchor}) | {faults} | {times} | yes |")
    return "\n".join([*lines, ""])


_STEPS = {
    "killed": re.compile(r"(?P<who>killed|a function killed) (?P<when>before|after) (?P<step>.+)"),
    "broken": re.compile(r"(?P<who>)`(?P<step>[^`]+)` (?P<when>lost on its way .+|carried out, and .+)"),
}
"""Faults that are tried at every step, twice: they share a table, with a column for each."""


def _tables(found: list[Tried]) -> list[str]:
    at_steps = {kind: [row for row in found if form.fullmatch(row.fault)] for kind, form in _STEPS.items()}
    others = [row for row in found if not any(form.fullmatch(row.fault) for form in _STEPS.values())]
    tables = [_steps(kind, rows) for kind, rows in at_steps.items() if rows]
    if others:
        lines = [f"| {row.fault} | {row.times} | {row.outcome} |" for row in others]
        tables.insert(0, "\n".join(["| tried | times | came out |", "|---|---|---|", *lines, ""]))
    return tables


def _steps(kind: str, rows: list[Tried]) -> str:
    """At each step once before and once after it."""
    cells: dict[str, dict[str, str]] = {}
    whens: list[str] = []
    who = ""
    for row in rows:
        match = _STEPS[kind].fullmatch(row.fault)
        assert match is not None
        who = match["who"]
        whens += [match["when"]] if match["when"] not in whens else []
        cells.setdefault(match["step"], {})[match["when"]] = row.outcome
    whens.sort(key=lambda when: not when.startswith(("before", "lost")))
    heads = [f"{who} {when} it".strip() if kind == "killed" else when for when in whens]
    lines = [
        f"| `{step}` | {' | '.join(at_step.get(when, '-') for when in whens)} |"
        for step, at_step in sorted(cells.items(), key=lambda item: item[0].split(" ")[-1])
    ]
    return "\n".join([f"| step | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|", *lines, ""])


def _not_tried(run: Run) -> str:
    lines = [
        _bullet(one) for one in (*_NEVER_TRIED, *(f"On this machine: {reason}" for reason in run.skipped))
    ]
    return "\n".join(["## What was not tried", "", *lines, ""])


def _bullet(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False)


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


_HEAD = """# Guarantees, and the faults that were tried on them

What hooksaga promises, what was done to make it break the promise, how often, and what came out. `make faults` does all
of it again and writes this page; when one test fails nothing is written. Each fault strikes the product as users run
it, with a real PostgreSQL, and after each story `hooksaga audit` reads every row against every promise and has to find
nothing. If you doubt the suite rather than the product, begin with
[what it finds](#the-suite-finds-mistakes-products-that-were-broken-on-purpose), and with
[what was not tried](#what-was-not-tried).

Delivery is at least once: "sent again" below means that a receiver saw one request more, with the same `webhook-id`. It
happens where nobody could record how a POST ended: its process died, its lease was over, or its answer was lost.
"""

_ABOUT = {
    Promise.ARRIVES: "A story is told, with deliveries that succeed, retry, die, are requeued and are canceled. The "
    "process is killed by SIGKILL at one named point of it, and the story goes on. Points are named after the "
    "statements in `sql/queries`: before and after each write, each commit, each send and each POST.",
    Promise.QUEUES: "SQS mode: functions in processes of their own, an emulator of the SQS API between them, and for "
    "its lies a proxy that changes what it is told and what it answers. The functions die at each point, too.",
    Promise.DATABASE: "A proxy on the wire cuts the connection once; nothing is restarted. What a client was not "
    "told it asks again, with the same key. Under load: producers post with keys to a process that is never restarted, "
    "for receivers that are good, slow, flaky and dead, while the fault lasts and after it.",
    Promise.FENCED: "A result counts only while the lease is its worker's.",
    Promise.INTERLEAVED: "Every role works on one database at once, statement by statement, in orders chosen at "
    "random, beside a model in plain Python. After each step the audit has to find nothing, and at the end of each run "
    "all has to end.",
    Promise.ALONE: "One row, message, subscription or payload at fault, and its neighbours.",
    Promise.NETWORK: "Sender and receiver in two network namespaces, with a link between them that a thread spoils. "
    "The times are those of packets that were lost.",
    Promise.CLOCK: "The clock of the PostgreSQL server is set while it runs, back and ahead, mostly by ten minutes. "
    "Which events a subscription gets is told by ids and snapshots, so no clock has a say in it. Everything that "
    "waits for a time waits by the clock: longer by the step where it was set back, less where it was set ahead. A "
    "clock that was ahead and is corrected is set back: what was planned meanwhile waits until that time comes, or "
    "until [an operator ends the wait](operations/database.md#after-the-clock-was-wrong). Sessions of the console and "
    "the times in logs go by the clock of their process.",
    Promise.GUARDED: "As the database's owner, past every function of the product.",
    Promise.CAUGHT: "A test that never failed proves little. Each line is a well-known mistake, made in the running "
    "product; the test beside it failed, as it must. In brackets is the kind of fault that found it; a test of the "
    "suite asks that no kind is missing. The state machine itself is tested by [mutants](testing.md#mutants).",
}

_NEVER_TRIED = (
    "AWS itself: Lambda, SQS, RDS Proxy and an RDS failover are played by emulators and by a standby on one machine.",
    "A standby that is not synchronous. What only the old server had is lost with it, whoever was told of it.",
    "Loss of power, disks that lie about fsync, rows that rot on disk. Servers were killed, and given full disks.",
    "A bad network to the database, packet by packet. There connections are cut, answers are lost, a server hangs.",
    "The kernel's own network emulation (netem), which many machines lack: packets go through TUN devices instead.",
    "A clock of the database that runs at another speed, or another one after a failover: it was only set.",
    "An owner of the database who switches its guards off.",
    "A worker that dies while it reads what it claimed, again and again, for want of memory for the whole batch.",
    "Other systems than Linux, and PostgreSQL versions other than the one above.",
    "Load over hours: `make soak` is for that ([testing](testing.md#the-soak)).",
)
