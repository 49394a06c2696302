"""Faults under load: copies replaced, deliveries without copies, a tick switched off, the database restarted."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hooksaga.doctor.stack import StackDoctor
from infra.proof.load import read_journal
from infra.proof.proof import Proof, wait_until
from infra.proof.results import Result

REPLACED = ("ingest", "router", "orchestrator", "delivery", "lease_cleaner")
TICK = "lease_cleaner"
"""A function that only its tick starts: its alarm cannot be kept quiet by messages."""

MARK = "PROOF_REPLACED"
RESTART_MINUTES = 20
FIRST_EVENT_MINUTES = 5
"""For the first start of the functions, and what the client repeats meanwhile."""

INVOCATION_MINUTES = 3
"""What has begun before copies are taken away ends in this time: the timeout of delivery, and some to spare."""

QUIET_SECONDS = 4.0
TICKS_CHECK = "the ticks are enabled"


def start_load(proof: Proof, result: Result) -> None:
    """Let the load run alone, from its first accepted event on. The caller has started it."""
    wait_until(lambda: bool(read_journal(proof.journal)), FIRST_EVENT_MINUTES, "the first event")
    with _measured(proof, result):
        time.sleep(proof.options.minutes * 60)
    result.done.append(f"{proof.options.rate:g} events a second, each with an idempotency key.")


def replace_copies(proof: Proof, result: Result) -> None:
    """Change a variable of each function: Lambda starts new copies and gives the old ones no more work."""
    functions = proof.account.client("lambda")
    proof.state.set(disturbed_at=proof.state.get("disturbed_at", time.time()))
    with _measured(proof, result):
        for name in (f"{proof.place.prefix}-{part}" for part in REPLACED):
            found = functions.get_function_configuration(FunctionName=name)
            variables = {**found["Environment"]["Variables"], MARK: f"{time.time():.0f}"}
            functions.update_function_configuration(FunctionName=name, Environment={"Variables": variables})
            wait_until(lambda name=name: _is_updated(functions, name), 5, f"the update of {name}")
        time.sleep(proof.options.fault_minutes * 60)
    result.done.append(f"A changed variable replaced all copies of {', '.join(REPLACED)}.")


def _is_updated(functions: Any, name: str) -> bool:
    found = functions.get_function_configuration(FunctionName=name)
    return found.get("LastUpdateStatus", "Successful") == "Successful"


def throttle_delivery(proof: Proof, result: Result) -> None:
    """Reserve no copies for delivery: nothing is delivered, everything is accepted, and the messages come back."""
    functions, name = proof.account.client("lambda"), f"{proof.place.prefix}-delivery"
    half, counted = proof.options.fault_minutes * 30, list[int]()

    def is_quiet() -> bool:
        counted.append(_requests(proof))
        return counted[-1] in counted[:-1]

    with _measured(proof, result):
        functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
        try:
            time.sleep(half)
            wait_until(is_quiet, INVOCATION_MINUTES, "the last invocation in flight", every=QUIET_SECONDS)
            time.sleep(half)
            during = _requests(proof) - counted[-1]
        finally:
            functions.delete_function_concurrency(FunctionName=name)
    result.done.append(f"No copies of delivery for {proof.options.fault_minutes:g} minutes.")
    result.figures["requests to receivers in the second half"] = f"{during}"
    result.require(during == 0, f"{during} requests arrived although delivery had no copies")


def _requests(proof: Proof) -> int:
    return sum(one.requests for one in proof.receiver.arrivals().values())


def stop_tick(proof: Proof, result: Result) -> None:
    """Disable the rule of one tick. The doctor must notice it at once, and the alarm after two periods."""
    events, name = proof.account.client("events"), f"{proof.place.prefix}-{TICK}-tick"
    with _measured(proof, result):
        events.disable_rule(Name=name)
        try:
            found = _faults_of_ticks(proof)
            _wait_for_alarm(proof, result)
        finally:
            events.enable_rule(Name=name)
        after = _faults_of_ticks(proof)
    result.done.append(f"The tick of {TICK} was disabled, and enabled again.")
    result.figures["the doctor said"] = "; ".join(found) or "nothing"
    result.require(any(TICK in fault for fault in found), "the doctor did not notice the tick")
    result.require(not after, f"the doctor still says {after} after the tick was enabled")


def _faults_of_ticks(proof: Proof) -> list[str]:
    checks = StackDoctor(proof.stack).check()
    return next(check.faults for check in checks if check.name == TICKS_CHECK)


def _wait_for_alarm(proof: Proof, result: Result) -> None:
    minutes = proof.options.alarm_minutes
    if not minutes:
        time.sleep(proof.options.fault_minutes * 60)
        result.unavailable.append(
            "The alarm for a missing tick: two periods of five minutes were not waited for."
        )
        return
    started, alarm = time.monotonic(), f"{proof.place.prefix} ticks-missing: {TICK}"
    before = _state(proof, alarm)
    if before == "ALARM":
        result.unavailable.append("The alarm for a missing tick: it was still active from the deployment.")
    while _state(proof, alarm) != "ALARM" and time.monotonic() - started < minutes * 60:
        time.sleep(10)
    waited = time.monotonic() - started
    result.figures["the alarm was active after"] = f"{waited:.0f} s" if before != "ALARM" else "before"
    result.require(_state(proof, alarm) == "ALARM", f"the alarm did not fire within {minutes:g} minutes")


def _state(proof: Proof, alarm: str) -> str:
    found = proof.account.client("cloudwatch").describe_alarms(AlarmNames=[alarm])["MetricAlarms"]
    return found[0]["StateValue"] if found else "missing"


def restart_database(proof: Proof, result: Result) -> None:
    """Reboot the instance; with a second one in another zone, fail over to it."""
    host = proof.state["outputs"].get("DatabaseHost")
    if host is None:
        result.unavailable.append("A failover of the database: this deployment has no RDS instance.")
        return
    with _measured(proof, result):
        result.figures["until it was available"] = f"{reboot(proof, host.split('.')[0]):.0f} s"
        time.sleep(proof.options.fault_minutes * 60)
    kind = "rebooted with a failover to the other zone" if proof.place.env.database.multi_az else "rebooted"
    result.done.append(f"The database was {kind}.")


def reboot(proof: Proof, instance: str) -> float:
    """Return the seconds until the instance is available again."""
    rds = proof.account.client("rds")
    rds.reboot_db_instance(DBInstanceIdentifier=instance, ForceFailover=proof.place.env.database.multi_az)
    time.sleep(5)  # until its status shows the reboot
    return 5 + wait_until(lambda: _is_available(rds, instance), RESTART_MINUTES, f"the reboot of {instance}")


def _is_available(rds: Any, instance: str) -> bool:
    found = rds.describe_db_instances(DBInstanceIdentifier=instance)["DBInstances"]
    return found[0]["DBInstanceStatus"] == "available"


def undo(proof: Proof) -> None:
    """Take back what an interrupted fault may have left. Safe to repeat."""
    proof.account.client("lambda").delete_function_concurrency(FunctionName=f"{proof.place.prefix}-delivery")
    proof.account.client("events").enable_rule(Name=f"{proof.place.prefix}-{TICK}-tick")


@contextmanager
def _measured(proof: Proof, result: Result) -> Iterator[None]:
    """Note the load in the block; nothing accepted is a fault."""
    started = time.time()
    yield
    measure(proof, result, started)


def measure(proof: Proof, result: Result, started: float) -> None:
    """Note the events accepted since the Unix time, and the longest wait of a producer."""
    accepted = [one for one in read_journal(proof.journal) if one.accepted_at >= started]
    result.figures["events accepted meanwhile"] = f"{len(accepted)}"
    longest = max((one.waited for one in accepted), default=0)
    result.figures["longest wait for a 202"] = f"{longest:.1f} s"
    result.require(bool(accepted), "no event was accepted meanwhile")
