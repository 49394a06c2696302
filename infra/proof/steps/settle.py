"""Wait until everything has arrived, and check it."""

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from hooksaga.local.api_client import ApiClient, ApiError
from infra.proof.load import Accepted, read_journal
from infra.proof.proof import Proof
from infra.proof.receiver import PATHS, Arrival
from infra.proof.receiver_function.handler import FAILING
from infra.proof.results import Result, StepFailed
from infra.proof.steps.bill import measure_bill
from infra.proof.steps.deploy import UPGRADED, examine
from infra.proof.steps.metrics import measure_stages

Arrivals = Mapping[tuple[str, str], Arrival]

POLL_SECONDS = 10
EXPLAINED = 3
"""Missing deliveries whose state is asked for."""

AUDITS = 20


def settle(proof: Proof, result: Result) -> None:
    """Compare the journal of accepted events with what the receiver counted, and ask the audit and the doctor."""
    accepted = read_journal(proof.journal)
    if not accepted:
        raise StepFailed("no event was accepted in this run")
    arrivals = _wait_for_all(proof, accepted)
    _count(result, accepted, arrivals)
    lost = missing(accepted, arrivals)
    result.require(not lost, f"{len(lost)} deliveries did not arrive{_explain(proof, lost)}")
    refused = proof.receiver.refused()
    result.require(not refused, f"requests with a wrong signature arrived: {dict(refused)}")
    result.faults += [f"the load had no 202 for {text}" for text in proof.state.get("given_up", [])]
    _check_stats(proof, result)
    _audit(proof, result)
    upgraded = proof.state.get("upgraded_to")
    examine(proof, result, expected=UPGRADED if upgraded else ())
    if upgraded:
        agents = {agent for one in arrivals.values() for agent in one.agents}
        result.require(
            any(agent.endswith(upgraded) for agent in agents), f"only {agents} sent, not {upgraded}"
        )
    _measure_latency(proof, result, accepted, arrivals)
    measure_stages(proof, result)
    measure_bill(proof, result, accepted)


def missing(accepted: Sequence[Accepted], arrivals: Arrivals) -> list[tuple[str, str]]:
    """Return path and event of every delivery that did not arrive."""
    wanted = [(path, one.id) for one in accepted for path in PATHS]
    return [one for one in wanted if one not in arrivals or not arrivals[one].arrived]


def _wait_for_all(proof: Proof, accepted: Sequence[Accepted]) -> Arrivals:
    deadline = time.monotonic() + proof.options.settle_minutes * 60
    while True:
        arrivals = proof.receiver.arrivals()
        if not missing(accepted, arrivals) or time.monotonic() > deadline:
            return arrivals
        time.sleep(POLL_SECONDS)


def _count(result: Result, accepted: Sequence[Accepted], arrivals: Arrivals) -> None:
    wanted = len(accepted) * len(PATHS)
    arrived = wanted - len(missing(accepted, arrivals))
    result.done.append("Every 202 was compared with what the receiver counted.")
    result.figures["events accepted"] = f"{len(accepted)}"
    result.figures["deliveries that arrived"] = f"{arrived} of {wanted}"
    result.figures["repeated requests"] = f"{sum(one.repeats for one in arrivals.values())}"
    result.figures["attempts answered with 503 on purpose"] = (
        f"{sum(x.failed_first for x in arrivals.values())}"
    )
    unknown = {event for _, event in arrivals} - {one.id for one in accepted}
    result.figures["events that arrived without a noted 202"] = f"{len(unknown)}"


def _explain(proof: Proof, lost: Sequence[tuple[str, str]]) -> str:
    said = list[str]()
    api = ApiClient(proof.api_url, proof.state["key"])
    for path, event_id in lost[:EXPLAINED]:
        try:
            event = api.call("GET", f"/v1/events/{event_id}")
            states = ", ".join(
                f"{saga['status']} {saga['final_error_code'] or ''}" for saga in event["sagas"]
            )
        except ApiError as error:
            states = str(error)
        said.append(f"{event_id} at {path}: {states}")
    return f" ({'; '.join(said)})" if said else ""


def _check_stats(proof: Proof, result: Result) -> None:
    """Nothing may be open, and no delivery a dead letter: every endpoint answers 200 in the end."""
    deadline = time.monotonic() + proof.options.settle_minutes * 60
    while (open_work := _open(stats := proof.stack.ask_admin({"action": "stats"}))) and (
        time.monotonic() < deadline
    ):
        time.sleep(POLL_SECONDS)
    result.require(not open_work, f"work is still open: {open_work}")
    result.figures["dead letters"] = f"{stats['dead_letters_24h']}"
    result.require(
        stats["dead_letters_24h"] == 0, f"{stats['dead_letters_24h']} dead letters: see `hooksaga dlq`"
    )


def _open(stats: Mapping[str, Any]) -> dict[str, Any]:
    names = ("outbox", "sagas_waiting", "jobs_pending", "jobs_leased", "results_unapplied")
    return {name: stats[name] for name in names if stats[name]}


def _audit(proof: Proof, result: Result) -> None:
    """Ask for the invariants that one call had no time for again."""
    left, checked = list[str](), 0
    for _ in range(AUDITS):
        answer = proof.stack.ask_admin({"action": "audit", **({"invariants": left} if left else {})})
        checked += len(answer["invariants"])
        result.faults += [f"audit: {one}" for one in answer["invariants"] if one["rows"]]
        left = answer["unchecked"]
        if not left:
            result.done.append(f"`hooksaga audit`: {checked} invariants were checked.")
            return
    result.faults.append(f"the audit had no time for {left}")


def _measure_latency(proof: Proof, result: Result, accepted: Sequence[Accepted], arrivals: Arrivals) -> None:
    """From the 202 to the first request, by the receiver's clock, without the endpoint that fails on purpose."""
    ahead = proof.receiver.clock_ahead_seconds()
    disturbed_from = proof.state.get("disturbed_at", float("inf"))
    calm = [
        arrivals[path, one.id].first_at - ahead - one.accepted_at
        for one in accepted
        if one.accepted_at < disturbed_from
        for path in PATHS
        if not path.startswith(FAILING) and (path, one.id) in arrivals
    ]
    if len(calm) > 1:
        cuts = statistics.quantiles(calm, n=20)
        result.figures["202 to receiver before the faults, p50"] = f"{cuts[9] * 1000:.0f} ms"
        result.figures["202 to receiver before the faults, p95"] = f"{cuts[18] * 1000:.0f} ms"
    result.figures["clock of the receiver"] = f"{ahead * 1000:+.0f} ms"
