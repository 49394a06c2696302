"""`make aws-proof` on an emulator, as a user runs it: every step, every call, and what an emulator lacks is named."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.aws.deployment import LOCAL
from infra.proof.calls import OPERATIONS, policy
from infra.proof.page import DEFAULTS
from infra.proof.place import Place
from infra.proof.proof import Proof
from infra.proof.run import NAMES
from infra.proof.state import State
from infra.proof.steps.faults import reboot
from tests.infra.conftest import ROOT
from tests.infra.local_deployment.deployment import emulated_stack
from tests.infra.local_deployment.stack import ACCOUNT, REGION, LocalStack

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(2700)]

SECONDS = 2400
RATE = 3
NOT_ON_AN_EMULATOR = {"rds:DescribeDBInstances", "rds:RebootDBInstance"}
"""Calls that need an instance of RDS; a test of their own makes them."""


@dataclass(frozen=True)
class Run:
    """A finished run: what it stored, what it said, and the page."""

    state: dict[str, Any]
    output: str
    code: int
    page: str
    folder: Path

    def result(self, step: str) -> dict[str, Any]:
        return self.state["results"][step]


@dataclass(frozen=True)
class Prover:
    """An emulator, and the credentials of a user who has the printed policy and nothing else."""

    place: LocalStack
    credentials: dict[str, str]

    @property
    def environment(self) -> dict[str, str]:
        return {**self.place.environment(), **self.credentials}


def prove(prover: Prover, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in this checkout against the emulator."""
    place = prover.place
    python = ("--context", f"python={place.python}") if place.python else ()
    return subprocess.run(
        [sys.executable, "-m", "infra.proof", "--folder", str(folder), *python, *arguments],
        cwd=ROOT,
        env=prover.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def place() -> Iterator[LocalStack]:
    """An emulator with the CDK's bootstrap, and a database beside it."""
    with emulated_stack() as stack:
        yield stack


@pytest.fixture(scope="module")
def prover(place: LocalStack) -> Prover:
    """Bootstrapped by an administrator, as the page says."""
    place.bootstrap()
    iam = place.client("iam")
    iam.create_user(UserName="prover")
    # On AWS the ARN of a rule names no event bus unless it is a custom one; this emulator's always does.
    document = json.dumps(policy(LOCAL.prefix)).replace(":rule/", ":rule/default/")
    iam.put_user_policy(UserName="prover", PolicyName="proof", PolicyDocument=document)
    key = iam.create_access_key(UserName="prover")["AccessKey"]
    return Prover(
        place,
        {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]},
    )


def test_the_emulator_refuses_what_the_policy_does_not_allow(prover: Prover) -> None:
    """Else the run would not show that the policy suffices."""
    session = boto3.Session(
        prover.credentials["AWS_ACCESS_KEY_ID"],
        prover.credentials["AWS_SECRET_ACCESS_KEY"],
        region_name=REGION,
    )
    with pytest.raises(ClientError, match="not authorized"):
        session.client("iam", endpoint_url=prover.place.endpoint).list_users()
    with pytest.raises(ClientError, match="not authorized"):
        session.client("sqs", endpoint_url=prover.place.endpoint).create_queue(
            QueueName="hooksaga-local-mine"
        )


@pytest.fixture(scope="module")
def run(prover: Prover) -> Run:
    """One whole run, with short times. Its folder has the certificates that the functions were told to trust."""
    place = prover.place
    done = prove(
        prover,
        place.work_dir,
        *("--yes", "--rate", str(RATE), "--minutes", "0.3", "--fault-minutes", "0.3"),
        *("--alarm-minutes", "0", "--settle-minutes", "8"),
    )
    sys.stdout.write(done.stdout + done.stderr)
    state = json.loads((place.work_dir / "state.json").read_text())
    return Run(state, done.stdout, done.returncode, (place.work_dir / "page.md").read_text(), place.work_dir)


def test_every_step_passes_or_says_what_is_not_available(run: Run) -> None:
    outcomes = {name: run.result(name)["outcome"] for name in NAMES}
    assert outcomes == {**dict.fromkeys(NAMES, "passed"), "database": "not available here"}
    assert run.code == 0


def test_everything_arrived_signed_at_every_subscription(run: Run) -> None:
    figures = run.result("settle")["figures"]
    accepted = int(figures["events accepted"])
    assert accepted > 20
    assert figures["deliveries that arrived"] == f"{3 * accepted} of {3 * accepted}"
    assert int(figures["attempts answered with 503 on purpose"]) > 0
    assert figures["dead letters"] == "0"
    journal = (run.folder / "accepted.jsonl").read_text().splitlines()
    assert len({json.loads(line)["id"] for line in journal}) == accepted


def test_each_fault_had_its_effect(run: Run) -> None:
    assert run.result("throttle")["figures"]["requests to receivers in the second half"] == "0"
    assert run.result("tick")["figures"]["the doctor said"] == "the tick of lease_cleaner is DISABLED"
    for step in ("load", "replace", "throttle", "tick", "upgrade"):
        assert int(run.result(step)["figures"]["events accepted meanwhile"]) > 0


def test_what_an_emulator_lacks_is_named(run: Run) -> None:
    said = {name: run.result(name)["unavailable"] for name in NAMES if run.result(name)["unavailable"]}
    assert set(said) == {"database", "tick", "settle", "destroy"}
    lacking = " ".join(text for texts in said.values() for text in texts)
    for what in ("failover", "alarm", "EndToEndLatency", "bill of SQS", "log group"):
        assert what in lacking
        assert what in run.page


def test_the_policy_lists_every_call_and_no_other(run: Run) -> None:
    """The clients refuse what is not listed; here every listed call was made, but for those of RDS."""
    assert set(run.state["calls"]) == OPERATIONS - NOT_ON_AN_EMULATOR


def test_nothing_is_left(run: Run, place: LocalStack) -> None:
    assert run.result("destroy")["figures"]["left by name"] == "nothing"
    assert place.leftovers() == []


def test_the_page_says_that_it_was_an_emulator(run: Run) -> None:
    assert "on an emulator, not in an account" in run.page
    assert "Nobody has run it" not in run.page
    assert ACCOUNT not in run.page


def test_without_yes_nothing_is_deployed(prover: Prover, run: Run, tmp_path: Path) -> None:
    done = prove(prover, tmp_path)
    assert done.returncode == 1
    assert "add --yes to agree" in done.stdout
    assert prover.place.leftovers() == []


def test_the_database_is_rebooted_with_failover(
    place: LocalStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an instance of the emulator's, which no function uses."""
    for name, value in place.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)  # a Proof replaces it
    instance = "hooksaga-proof-database-1"
    rds = boto3.client("rds", region_name=REGION)
    rds.create_db_instance(
        DBInstanceIdentifier=instance,
        DBInstanceClass="db.t4g.micro",
        Engine="postgres",
        MasterUsername="owner",
        ManageMasterUserPassword=True,
        AllocatedStorage=20,
        MultiAZ=True,
    )
    proof = Proof(Place("dev", None), State(tmp_path), DEFAULTS)
    assert reboot(proof, instance) < 60
    assert set(proof.account.calls) == NOT_ON_AN_EMULATOR
