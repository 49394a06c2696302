"""What hooksaga promises, and what was tried against each promise: the rows of docs/guarantees.md.

A test with the mark `guarantee(promise, fault)` is a row of its own once it has passed, with its parameters counted.
A test that tries many faults notes a row for each by `tried`.
"""

import os
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

IN_FULL = os.environ.get("HOOKSAGA_FAULTS") == "all"
"""`make faults` and `make hostile-cases` try everything; `make test` the short form."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guarantees.md"

RecordProperty = Callable[[str, object], None]


class Promise(StrEnum):
    """In the order of the page."""

    ARRIVES = "What was accepted arrives, or is a dead letter"
    QUEUES = "No message matters: PostgreSQL alone knows what there is to do"
    DATABASE = "A database that breaks costs time and nothing else"
    FENCED = "Who lost its lease changes nothing"
    INTERLEAVED = "No order of statements breaks a promise"
    ALONE = "What is poisoned fails alone"
    NETWORK = "A network that loses, delays and cuts costs attempts and nothing else"
    GUARDED = "The database refuses what must not happen, whoever asks"
    CAUGHT = "The suite finds mistakes: products that were broken on purpose"


USUAL_OUTCOME = {
    Promise.GUARDED: "refused",
    Promise.FENCED: "dropped",
    Promise.QUEUES: "arrived",
    Promise.ARRIVES: "arrived",
    Promise.ALONE: "failed alone",
    Promise.DATABASE: "healed, nothing lost",
}
"""Of a marked test that says no other."""


@dataclass(frozen=True, order=True)
class Tried:
    """One row. times: how often the fault struck in this run."""

    promise: Promise
    fault: str
    times: int
    outcome: str

    @classmethod
    def read(cls, row: Any) -> "Tried":
        """What `tried` has noted, after its way through a test report."""
        promise, fault, times, outcome = row
        return cls(Promise(promise), fault, int(times), outcome)


def tried(
    record_property: RecordProperty, promise: Promise, fault: str, outcome: str, *, times: int = 1
) -> None:
    """Note what came of a fault. Called once it is known."""
    record_property("tried", [promise.value, fault, times, outcome])


def arrivals(counts: Iterable[int], undisturbed: Iterable[int]) -> str:
    """The outcome of a story, in words."""
    again = sum(counts) - sum(undisturbed)
    return "arrived once" if again == 0 else f"arrived; {again} sent again with the same webhook-id"


def page(rows: Iterable[Tried]) -> str:
    """The whole page; rows of one fault and outcome are one row."""
    counted: dict[tuple[Promise, str, str], int] = {}
    for row in rows:
        key = (row.promise, row.fault, row.outcome)
        counted[key] = counted.get(key, 0) + row.times
    parts = [_HEAD]
    for promise in Promise:
        found = [
            (fault, times, outcome) for (kind, fault, outcome), times in counted.items() if kind is promise
        ]
        if found:
            parts.append(f"## {promise}\n\n{textwrap.fill(_ABOUT[promise], 120)}\n")
            lines = [f"| {fault} | {times} | {outcome} |" for fault, times, outcome in sorted(found)]
            parts.append("\n".join(["| tried | times | came out |", "|---|---|---|", *lines, ""]))
    return "\n".join(parts)


_HEAD = """# Guarantees, and the faults that were tried on them

`make faults` tries every fault on this page and writes it. Each row was measured in that run; when a test fails nothing
is written. After each story `hooksaga audit` has to find nothing.
"""

_ABOUT = {
    Promise.ARRIVES: "A story is told, with deliveries that succeed, retry, die, are requeued and are canceled. The "
    "process is killed by SIGKILL at one named point of it, and the story goes on. Points are named after the "
    "statements in `sql/queries`.",
    Promise.QUEUES: "SQS mode: functions in processes of their own, a real SQS API between them, and for its lies a "
    "proxy that changes what it is told and what it answers.",
    Promise.DATABASE: "A proxy on the wire cuts the connection once; nothing is restarted. What a client was not "
    "told it asks again, with the same key. Under load: producers post with keys to a process that is never restarted, "
    "for receivers that are good, slow, flaky and dead, while the fault lasts and after it.",
    Promise.FENCED: "A result counts only while the lease is its worker's.",
    Promise.INTERLEAVED: "Every role works on one database at once, statement by statement, in orders chosen at "
    "random, beside a model in plain Python. After each step the audit has to find nothing, and at the end of each run "
    "all has to end.",
    Promise.ALONE: "One row, message, subscription or payload at fault, and its neighbours.",
    Promise.NETWORK: "Sender and receiver in two network namespaces.",
    Promise.GUARDED: "As the database's owner, past every function of the product.",
    Promise.CAUGHT: "Each line is a well-known mistake, made in the running product; the test beside it failed, as "
    "it must.",
}
