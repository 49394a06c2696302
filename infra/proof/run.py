"""Runs the steps in order, and destroys what was deployed whatever happens."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from hooksaga.aws.deployed_stack import StackFault
from hooksaga.local.api_client import ApiError
from infra.proof.proof import Proof
from infra.proof.results import Outcome, Result, StepFailed
from infra.proof.steps import faults
from infra.proof.steps.check import check
from infra.proof.steps.deploy import deploy, make_key, make_receiver
from infra.proof.steps.destroy import destroy
from infra.proof.steps.settle import settle
from infra.proof.steps.upgrade import upgrade

ENDS_A_STEP = (StepFailed, StackFault, ApiError, BotoCoreError, ClientError, OSError)


@dataclass(frozen=True, slots=True)
class Step:
    """`loaded`: runs while events are posted; a failed one does not end the run."""

    name: str
    about: str
    run: Callable[[Proof, Result], None]
    loaded: bool = False


STEPS = (
    Step(
        "check",
        "credentials, region, bootstrap, free names, the Lambda quota; the estimated price needs `--yes`",
        check,
    ),
    Step("deploy", "hooksaga's stack, by `infra.cdk_cli`", deploy),
    Step(
        "key",
        "the first API key, by the command in the output `HooksNextStep`; `hooksaga doctor --stack`",
        make_key,
    ),
    Step(
        "receiver",
        "a stack with a function URL that verifies signatures and counts in a DynamoDB table; three subscriptions",
        make_receiver,
    ),
    Step(
        "load",
        "posts with idempotency keys from this machine, undisturbed; each 202 is noted",
        faults.start_load,
        True,
    ),
    Step(
        "replace", "all copies of five functions replaced, by a changed variable", faults.replace_copies, True
    ),
    Step(
        "throttle",
        "no reserved copies for `delivery`: nothing arrives, all is accepted",
        faults.throttle_delivery,
        True,
    ),
    Step(
        "tick",
        "the rule of one tick disabled: the doctor and the alarm `ticks-missing` must notice",
        faults.stop_tick,
        True,
    ),
    Step("database", "a reboot with failover to the other zone", faults.restart_database, True),
    Step("upgrade", "another version in every function, and a migration, deployed under load", upgrade, True),
    Step(
        "settle",
        "every accepted event arrived at every subscription, signed; no dead letters; clean audit; latency; bill",
        settle,
    ),
    Step("destroy", "both apps, and a search for what is left, by name and by tag", destroy),
)
"""In order. The last one also runs after a failure."""

NAMES = tuple(step.name for step in STEPS)


class Stopped(Exception):
    """A step failed on which the later ones depend."""


def run(proof: Proof, first: str) -> None:
    """Run all steps from the first one up to the check of the arrivals. Raises Stopped, and KeyboardInterrupt."""
    chosen = STEPS[NAMES.index(first) : -1]
    loaded = [step for step in chosen if step.loaded]
    for step in (one for one in chosen if NAMES.index(one.name) < NAMES.index("load")):
        run_step(proof, step)
    with proof.callback_url():
        if loaded:
            _undo_faults(proof)
            with proof.load():
                for step in loaded:
                    run_step(proof, step)
        run_step(proof, STEPS[-2])


def _undo_faults(proof: Proof) -> None:
    """Take back what an interrupted run may have left disturbed. Raises Stopped."""
    try:
        faults.undo(proof)
    except ENDS_A_STEP as error:
        _tell(f"  could not undo the faults of an earlier run: {error}")
        raise Stopped("load") from error


def run_step(proof: Proof, step: Step) -> Result:
    """Run one step, store its result and show it. Raises Stopped if it failed and the others need it."""
    result, started = Result(step.name), time.monotonic()
    _tell(f"{step.name}: {step.about}")
    proof.account.calls.clear()
    ended = False
    try:
        step.run(proof, result)
    except ENDS_A_STEP as error:
        result.faults.append(str(error) or type(error).__name__)
        ended = not step.loaded
    except KeyboardInterrupt:
        result.faults.append("interrupted")
        raise
    finally:
        result.seconds = round(time.monotonic() - started, 1)
        if step is STEPS[0] and not result.faults:
            proof.begin()
        proof.state.note(result, dict(proof.account.calls))
        show(result)
    if ended:
        raise Stopped(step.name)
    return result


def passed(results: Sequence[Result]) -> bool:
    """Return whether every step ran and none failed."""
    ran = {result.step: result.outcome for result in results}
    return set(ran) == set(NAMES) and Outcome.FAILED not in ran.values()


def show(result: Result) -> None:
    lines = [
        f"  {result.outcome} in {result.seconds:.0f} s",
        *(f"    {text}" for text in result.done),
        *(f"    {name}: {value}" for name, value in result.figures.items()),
        *(f"    not available here: {text}" for text in result.unavailable),
        *(f"    FAULT: {text}" for text in result.faults),
    ]
    _tell("\n".join(lines))


def _tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
