"""Parts of `make aws-proof` without a deployment: the policy, the receiver, what is missing, the page, the upgrade."""

import base64
import io
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("boto3", reason="needs the infra extra: make install-infra")

from botocore.loaders import Loader
from standardwebhooks.webhooks import Webhook

from hooksaga.aws.deployment import ENVIRONMENTS
from infra.proof import __main__ as command
from infra.proof import page as page_of_proof
from infra.proof.account import Account, CallNotListed
from infra.proof.calls import CALLS, policy
from infra.proof.load import Accepted, read_journal
from infra.proof.place import Place, proof_environment
from infra.proof.proof import Proof
from infra.proof.receiver import PATHS, Arrival
from infra.proof.receiver_function.handler import challenge_in, fails_first, verifies
from infra.proof.results import Outcome, Result
from infra.proof.run import NAMES, Stopped, passed
from infra.proof.state import State
from infra.proof.steps.settle import missing
from infra.proof.steps.upgrade import MIGRATION, make_copy
from tests.infra.conftest import ROOT

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
BODY = b'{"number": 1}'


@pytest.fixture(autouse=True)
def own_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Account replaces boto3's default session, which other tests use too."""
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)


def test_the_committed_page_is_the_generated_one() -> None:
    """After a change: python -m infra.proof --write-page"""
    assert page_of_proof.PAGE.read_text(encoding="utf-8") == page_of_proof.page(page_of_proof.read_record())


def test_the_page_says_that_nobody_has_run_it_until_somebody_has() -> None:
    assert "**Nobody has run it in an account yet.**" in page_of_proof.page(None)
    result = Result(
        "deploy", seconds=12, done=["Done | so."], figures={"outputs": "9"}, faults=["broken\nline"]
    )
    record = {
        "date": "2026-12-01",
        "version": "0.1.0",
        "region": "eu-west-1",
        "emulator": False,
        "like": "dev",
        "results": [result.content()],
    }
    text = page_of_proof.page(record)
    assert "Nobody has run it" not in text
    assert "2026-12-01, in eu-west-1" in text
    assert "| deploy | failed | 12 | Done \\| so. FAULT: broken line |" in text
    assert "| deploy | outputs | 9 |" in text


def test_every_call_is_an_operation_that_boto3_knows() -> None:
    loader = Loader()
    assert CALLS
    for call in CALLS:
        assert call.operation in loader.load_service_model(call.service, "service-2")["operations"], call


def test_a_call_that_is_not_listed_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    account = Account()
    with pytest.raises(CallNotListed, match="sqs:PurgeQueue"):
        account.client("sqs").purge_queue(QueueUrl="http://127.0.0.1:9/000000000000/all")
    assert not account.calls


def allowed(document: dict[str, Any], action: str, resource: str) -> bool:
    return any(
        action in one["Action"] and fnmatchcase(resource, one["Resource"]) for one in document["Statement"]
    )


def test_the_policy_reaches_the_proofs_deployment_and_no_other() -> None:
    document = policy("hooksaga-proof")
    assert all(one["Effect"] == "Allow" for one in document["Statement"])
    ours, theirs = (
        f"arn:aws:lambda:eu-west-1:1:function:hooksaga-{name}-delivery" for name in ("proof", "prod")
    )
    for action in (
        "lambda:InvokeFunction",
        "lambda:PutFunctionConcurrency",
        "lambda:UpdateFunctionConfiguration",
    ):
        assert allowed(document, action, ours)
        assert not allowed(document, action, theirs)
    assert not allowed(
        document, "rds:RebootDBInstance", "arn:aws:rds:eu-west-1:1:db:hooksaga-prod-database-1"
    )
    changing = ("Put", "Delete", "Update", "Disable", "Enable", "Reboot", "Invoke")
    everywhere = [one["Action"] for one in document["Statement"] if one["Resource"] == "*"]
    assert not [name for names in everywhere for name in names if name.split(":")[1].startswith(changing)]


def test_permissions_are_printed_without_credentials() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "infra.proof", "--permissions"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == policy("hooksaga-proof")


def test_the_proof_has_settings_of_an_environment_and_nothing_that_is_kept() -> None:
    assert ENVIRONMENTS
    for name, env in ENVIRONMENTS.items():
        proof = proof_environment(name)
        assert proof.prefix == "hooksaga-proof"
        assert proof.functions == env.functions
        assert (proof.database.multi_az, proof.database.keep_when_destroyed) == (True, False)


def test_urls_of_an_account_are_its_own() -> None:
    place = Place("dev", None)
    assert place.api_url({"ApiUrl": "https://a.example/api/"}) == "https://a.example/api"
    assert place.function_url("https://f.lambda-url.example/") == "https://f.lambda-url.example"


def headers_of(body: bytes, event_id: str = "evt_1", moment: float = 1_800_000_000) -> dict[str, str]:
    """As an independent implementation signs."""
    signature = Webhook(SECRET).sign(event_id, datetime.fromtimestamp(moment, UTC), body.decode())
    return {
        "webhook-id": event_id,
        "webhook-timestamp": f"{moment:.0f}",
        "webhook-signature": f"v1,AAAA {signature}",
    }


def test_the_receiver_accepts_a_good_signature_and_no_other() -> None:
    headers, now = headers_of(BODY), 1_800_000_010
    assert verifies(SECRET, headers, BODY, now)
    assert not verifies(SECRET, headers, BODY + b" ", now)
    assert not verifies(SECRET, {**headers, "webhook-id": "evt_2"}, BODY, now)
    assert not verifies(SECRET, headers, BODY, now + 301)
    assert not verifies("whsec_" + base64.b64encode(b"x" * 32).decode(), headers, BODY, now)
    assert not verifies(SECRET, {}, BODY, now)


def test_the_receiver_answers_challenges_only() -> None:
    assert challenge_in(b'{"type": "subscription.verification", "challenge": "c"}') == "c"
    assert challenge_in(BODY) is None
    assert challenge_in(b"[1]") is None
    assert challenge_in(b"\xff") is None


def test_one_path_fails_the_first_attempt_of_some_events() -> None:
    failing = [number for number in range(1000) if fails_first(PATHS[-1], f"evt_{number}")]
    assert 50 < len(failing) < 200
    assert not any(fails_first(PATHS[0], f"evt_{number}") for number in failing)


def arrival(requests: int, *, failed_first: bool = False) -> Arrival:
    return Arrival(requests, 0.0, frozenset(), failed_first)


def test_what_did_not_arrive_everywhere_is_missing() -> None:
    """A request that was answered with 503 is no arrival."""
    accepted = [Accepted("evt_1", 0, 1), Accepted("evt_2", 0, 1)]
    arrivals = {(path, one.id): arrival(1) for path in PATHS for one in accepted}
    assert missing(accepted, arrivals) == []
    del arrivals[PATHS[0], "evt_1"]
    arrivals[PATHS[2], "evt_2"] = arrival(1, failed_first=True)
    assert missing(accepted, arrivals) == [(PATHS[0], "evt_1"), (PATHS[2], "evt_2")]


def test_repeats_are_requests_after_the_first_that_succeeded() -> None:
    assert [arrival(number).repeats for number in (1, 2, 3)] == [0, 1, 2]
    assert [arrival(number, failed_first=True).repeats for number in (1, 2, 3)] == [0, 0, 1]


def test_a_step_that_was_only_unavailable_has_not_passed() -> None:
    assert Result("x", done=["did"]).outcome is Outcome.PASSED
    assert Result("x", unavailable=["no"]).outcome is Outcome.UNAVAILABLE
    assert Result("x", done=["did"], unavailable=["no"], faults=["lost"]).outcome is Outcome.FAILED
    every = [Result(name, done=["did"]) for name in NAMES]
    assert passed(every)
    assert not passed(every[:-1])
    assert not passed([*every[:-1], Result(NAMES[-1], faults=["left"])])


def test_a_run_goes_on_from_its_file(tmp_path: Path) -> None:
    state = State(tmp_path / "run")
    state.set(key="hs_1")
    state.note(Result("deploy", done=["did"]), {"sqs:ListQueues": 2})
    state.note(Result("deploy", faults=["broke"]), {"sqs:ListQueues": 1})
    again = State(tmp_path / "run")
    assert again["key"] == "hs_1"
    assert again.calls == {"sqs:ListQueues": 3}
    assert again.results["deploy"].outcome is Outcome.FAILED
    assert (tmp_path / "run" / "state.json").stat().st_mode & 0o077 == 0


def test_a_cut_line_of_the_journal_is_left_out(tmp_path: Path) -> None:
    journal = tmp_path / "accepted.jsonl"
    assert read_journal(journal) == []
    journal.write_text('{"id": "evt_1", "sent_at": 1, "accepted_at": 2}\n{"id": "evt_2", "se')
    assert read_journal(journal) == [Accepted("evt_1", 1, 2)]


def test_the_upgraded_copy_has_another_version_and_migration(tmp_path: Path) -> None:
    version = make_copy(tmp_path / "copy")
    assert version.endswith("+proof")
    product = (tmp_path / "copy" / "shared" / "hooksaga" / "core" / "product.py").read_text()
    assert f'VERSION = "{version}"' in product
    assert (tmp_path / "copy" / "sql" / "migrations" / f"{MIGRATION}.sql").exists()


def stopped_by(
    problem: BaseException | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, keep: bool
) -> Any:
    """Return the exit code and the steps that ran after the run ended with the problem, with nobody at a terminal."""
    ran = list[str]()

    def run(proof: Any, _first: str) -> None:
        proof.has_deployed = str(problem) != "check"
        if problem is not None:
            if isinstance(problem, KeyboardInterrupt):
                proof.state.note(Result("deploy", faults=["interrupted"]), {})
            raise problem

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(command, "run_step", lambda _, step: ran.append(step.name))
    monkeypatch.setattr(command, "_write", lambda _: 0)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    proof = SimpleNamespace(state=State(tmp_path), has_deployed=False)
    try:
        return command.prove(cast("Proof", proof), "check", keep=keep), ran
    except KeyError:
        return None, ran


@pytest.mark.parametrize(
    ("problem", "keep", "code", "ran"),
    [
        (None, False, 0, ["destroy"]),
        (Stopped("deploy"), False, 0, ["destroy"]),
        (KeyboardInterrupt(), False, 0, ["destroy"]),
        (KeyError("a mistake"), False, None, ["destroy"]),
        (Stopped("check"), False, 1, []),
        (Stopped("settle"), True, 1, []),
        (None, True, 0, []),
    ],
)
def test_what_was_deployed_is_destroyed_unless_it_is_to_be_kept(
    problem: BaseException | None,
    keep: bool,
    code: int | None,
    ran: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A check that failed has deployed nothing: what is there belongs to somebody else."""
    assert stopped_by(problem, monkeypatch, tmp_path, keep=keep) == (code, ran)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "load"], "holds no run that got past deploy"),
        (["--rate", "0"], "--rate: 0 is not a positive number"),
        (["--like", "nowhere"], "--like: there is no environment 'nowhere'"),
    ],
)
def test_wrong_use_is_named(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "infra.proof", "--folder", str(tmp_path), *arguments],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr
