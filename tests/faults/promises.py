"""The promises of hooksaga and the faults tried against each: the rows of docs/guarantees.md.

A test with the mark `guarantee(promise, fault)` is a row of its own once it has passed, with its parameters counted.
A test that tries many faults notes a row for each by `tried`, and names them beforehand in its mark
`guarantees(promise, *faults)`, where a `*` stands for what only the run can tell.
"""

import os
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

    ARRIVES = "Every accepted event is delivered or dead-lettered"
    QUEUES = "Lost, late and repeated messages lose nothing"
    DATABASE = "A database failure delays deliveries and loses nothing"
    FENCED = "A worker that lost its lease cannot change state"
    INTERLEAVED = "No order of statements breaks a promise"
    ORDERED = "Order is kept where it is asked for"
    ROOM = "A silent endpoint holds only its own room"
    ALONE = "A poison row fails only itself"
    NETWORK = "A bad network costs attempts and loses nothing"
    CLOCK = "A step of the database's clock delays deliveries and loses nothing"
    GUARDED = "The database refuses illegal changes by every role"
    CAUGHT = "The suite detects faults planted in the product"


USUAL_OUTCOME = {
    Promise.GUARDED: "refused",
    Promise.FENCED: "dropped",
    Promise.QUEUES: "delivered",
    Promise.ARRIVES: "delivered",
    Promise.ALONE: "failed alone",
    Promise.ORDERED: "in order",
    Promise.ROOM: "the others were delivered",
    Promise.DATABASE: "recovered, nothing lost",
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
        """Read what `tried` recorded from a test report."""
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
