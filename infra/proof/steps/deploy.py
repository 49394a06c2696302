"""The deployment, the first key, and the receiver with its subscriptions."""

import json
import subprocess
import sys
from typing import Any

from hooksaga.doctor.check import Check
from hooksaga.doctor.database import MIGRATIONS
from hooksaga.doctor.stack import StackDoctor
from hooksaga.local.api_client import ApiClient
from infra.proof.cdk import DEPLOYMENT, RECEIVER
from infra.proof.load import EVENT_TYPE
from infra.proof.proof import Proof
from infra.proof.receiver import PATHS
from infra.proof.results import Result, StepFailed
from infra.proof.steps.destroy import tagged

CONSTRUCT = "Hooks"
"""Name of the construct, with which its outputs begin."""

ALARMS = "no alarm is active"
"""After a deployment the alarms for missing ticks are active until ten minutes have ticks, and after faults others."""


def deploy(proof: Proof, result: Result) -> None:
    """Raises StepFailed with the end of the CDK's log."""
    named = proof.cdk.deploy(DEPLOYMENT)
    outputs = {name.removeprefix(CONSTRUCT): value for name, value in named.items()}
    proof.state.set(outputs=outputs)
    result.done.append("`cdk deploy --all` of hooksaga's stack.")


def make_key(proof: Proof, result: Result) -> None:
    """Run the command that the output HooksNextStep names, and the doctor."""
    words = proof.state["outputs"]["NextStep"].split()
    made = subprocess.run(
        [sys.executable, "-m", "hooksaga.cli.app", *words[1:], "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise StepFailed(f"`{' '.join(words)}` failed: {made.stderr or made.stdout}")
    proof.state.set(key=json.loads(made.stdout)["key"])
    result.done.append(f"`{' '.join(words)}`, the output HooksNextStep.")
    examine(proof, result, expected=())


def examine(proof: Proof, result: Result, expected: tuple[str, ...]) -> None:
    """Run the doctor; every fault of it is one of the step, except those of the checks named in `expected`."""
    checks = list(StackDoctor(proof.stack).check())
    result.done.append(f"`hooksaga doctor --stack {proof.place.prefix}`: {len(checks)} checks.")
    for one in checks:
        if one.name == ALARMS:
            result.figures["alarms that are active"] = _names(one)
        elif one.name not in expected:
            result.faults += [f"doctor: {one.name}: {fault}" for fault in one.faults]


def _names(check: Check) -> str:
    return "; ".join(fault.split(": see")[0] for fault in check.faults) or "none"


def make_receiver(proof: Proof, result: Result) -> None:
    """Deploy the receiver, and subscribe and verify each of its paths."""
    proof.state.set(receiver=proof.cdk.deploy(RECEIVER))
    result.done.append("A function with a URL that verifies signatures, and a table in which it counts.")
    result.require(
        bool(tagged(proof)), "the tagging API does not list the receiver: nothing left could be found by it"
    )
    api = ApiClient(proof.api_url, proof.state["key"])
    with proof.callback_url() as url:
        for path in PATHS:
            subscription = _subscribe(api, url + path)
            proof.receiver.learn(path, subscription["secret"])
            api.call("POST", f"/v1/subscriptions/{subscription['id']}/verify")
    if refused := proof.receiver.refused():
        result.faults.append(f"signatures of verifications were refused: {refused}")
    result.figures["subscriptions"] = f"{len(PATHS)}, verified"


def _subscribe(api: ApiClient, url: str) -> dict[str, Any]:
    wanted = {"event_type": EVENT_TYPE, "callback_url": url, "base_delay_seconds": 5}
    return api.call("POST", "/v1/subscriptions", json=wanted)


UPGRADED = (MIGRATIONS,)
"""Check that is expected to differ once the upgrade has added a migration that this checkout lacks."""
