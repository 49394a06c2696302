"""The local target deployed on an emulator that enforces the roles' policies: an event delivered, a migration that
fails, an upgrade with open work, and nothing left at the end. The tests run in this order and share the deployment."""

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

import boto3
import httpx
from typer.testing import CliRunner

from hooksaga.aws.deployed_stack import DeployedStack
from hooksaga.aws.deployment import LOCAL
from hooksaga.cli.app import app
from hooksaga.doctor.database import GUARDS, MIGRATIONS, RIGHTS, ROLES
from hooksaga.doctor.sealed import SECRETS
from hooksaga.doctor.stack import StackDoctor
from hooksaga.local.api_client import ApiClient, ApiError
from hooksaga.local.receiver import Receiver, serve
from hooksaga.local.tls import Certificates, ensure_certificates
from hooksaga.operations.audit import invariants
from tests.api.explained import assert_explained
from tests.infra.conftest import ROOT
from tests.infra.local_deployment.deployment import deliver_one, emulated_stack
from tests.infra.local_deployment.stack import REGION, DeployFailed, LocalStack

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(600),
    # The deployed function keeps its connection to a receiver that has ended with its test's loop.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CARRIED = ("cdk", "infra", "functions", "shared", "sql")
FILES = ("cdk.json", "pyproject.toml", "constraints.txt")
RETRY_SECONDS = 15


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this project whose migrations a test may change."""
    copy = tmp_path_factory.mktemp("checkout")
    for folder in CARRIED:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copyfile(ROOT / file, copy / file)
    return copy


@pytest.fixture(scope="module")
def place(checkout: Path) -> Iterator[LocalStack]:
    """Bootstrapped and empty."""
    with emulated_stack(checkout) as stack:
        stack.bootstrap()
        yield stack


@pytest.fixture(scope="module")
def certificates(place: LocalStack) -> Certificates:
    return ensure_certificates(place.work_dir)


@pytest.fixture(scope="module")
def api_url(place: LocalStack) -> str:
    return place.api_url(place.deploy())


def new_migration(checkout: Path, name: str, sql: str) -> Path:
    path = checkout / "sql" / "migrations" / f"{name}.sql"
    path.write_text(sql)
    return path


async def test_an_event_goes_through_the_deployed_template(
    place: LocalStack, api_url: str, certificates: Certificates
) -> None:
    event = await deliver_one(place, api_url, certificates)
    assert [attempt["response_status"] for attempt in event["sagas"][0]["attempts"]] == [200]


@pytest.mark.parametrize("path", ["/v1/events/evt_1", "/v1/subscriptions/1", "/v1/stats"])
def test_a_problem_leads_to_its_explanation_behind_the_stage(
    place: LocalStack, api_url: str, path: str
) -> None:
    """By the host name that AWS gives an API, with the stage first in the path."""
    stage, api_id = api_url.split("/")[-2], api_url.split("/")[-3]
    host = {"host": f"{api_id}.execute-api.localhost"}

    def get(url: str) -> tuple[int, Mapping[str, str], str]:
        answer = httpx.get(url, headers=host, trust_env=False, timeout=60)
        return answer.status_code, answer.headers, answer.text

    url = f"{place.endpoint}/{stage}{path}"
    status, _, text = get(url)
    assert (status, json.loads(text)["type"]) == (401, f"/{stage}/v1/docs#error-unauthorized")
    assert_explained(json.loads(text), url, get)


@pytest.fixture
def deployed(place: LocalStack, api_url: str, monkeypatch: pytest.MonkeyPatch) -> DeployedStack:
    """Find the stack by AWS's variables, as the command line does."""
    for name, value in (
        ("AWS_ENDPOINT_URL", place.endpoint),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_DEFAULT_REGION", REGION),
    ):
        monkeypatch.setenv(name, value)
    return DeployedStack(LOCAL.prefix)


ALARMS = "no alarm is active"
"""Right after a deployment the alarm for ticks that are missing is rightly on: none has fired yet."""


def failed_checks(stack: DeployedStack) -> dict[str, list[str]]:
    """The checks that found something, but for the alarms."""
    return {
        check.name: check.faults
        for check in StackDoctor(stack).check()
        if check.faults and check.name != ALARMS
    }


def test_the_doctor_finds_a_sound_deployment_sound(deployed: DeployedStack) -> None:
    assert failed_checks(deployed) == {}


def test_the_doctor_names_what_was_switched_off(deployed: DeployedStack) -> None:
    events = boto3.client("events")
    rule = f"{LOCAL.prefix}-router-tick"
    events.disable_rule(Name=rule)
    try:
        found = failed_checks(deployed)
    finally:
        events.enable_rule(Name=rule)
    assert found == {"the ticks are enabled": ["the tick of router is DISABLED"]}


def test_the_doctor_names_a_queue_whose_messages_come_back_too_soon(deployed: DeployedStack) -> None:
    sqs = boto3.client("sqs")
    url = sqs.get_queue_url(QueueName=f"{LOCAL.prefix}-routing")["QueueUrl"]
    before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "30"})
    try:
        found = failed_checks(deployed)
    finally:
        sqs.set_queue_attributes(QueueUrl=url, Attributes=before)
    assert list(found) == [
        "visibility timeouts exceed function timeouts, and function timeouts the POST timeout"
    ]
    assert "visibility 30 s" in next(iter(found.values()))[0]


def test_the_doctor_says_that_nothing_is_there(deployed: DeployedStack) -> None:
    found = failed_checks(DeployedStack("hooksaga-nowhere"))
    assert {
        "functions are active",
        "the ticks are enabled",
        "the database answers the admin function",
    } <= set(found)


def run_on(stack: DeployedStack, *arguments: str) -> Any:
    """Return the output of a command on the deployment, which must succeed."""
    result = CliRunner().invoke(app, [*arguments, "--stack", stack.name, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_doctor_judges_the_database_of_a_deployment(deployed: DeployedStack) -> None:
    names = {check.name for check in StackDoctor(deployed).check()}
    assert {MIGRATIONS, ROLES, RIGHTS, GUARDS, SECRETS} <= names


def test_a_deployment_is_audited_pruned_and_resealed_through_its_functions(deployed: DeployedStack) -> None:
    audited = run_on(deployed, "audit")
    assert (audited["ok"], audited["unchecked"]) == (True, [])
    assert [one["invariant"] for one in audited["invariants"]] == invariants()
    pruned = run_on(deployed, "prune", "--older-than", "1d", "--dry-run")
    assert (pruned["sagas"], pruned["dry_run"]) == (0, True)
    assert run_on(deployed, "prune", "--older-than", "4w")["jobs"] == 0
    resealed = run_on(deployed, "secrets", "reseal")
    assert resealed["checked"] >= 1
    assert (resealed["changed"], resealed["unreadable"]) == (0, [])


def test_a_key_is_made_listed_and_revoked_through_the_admin_function(
    deployed: DeployedStack, api_url: str
) -> None:
    def run(*arguments: str) -> Any:
        return run_on(deployed, "keys", *arguments)

    made = run("create", "--name", "by the command line", "--scope", "admin")
    api = ApiClient(api_url, made["key"])
    assert "outbox" in api.call("GET", "/v1/stats")
    assert made["id"] in [key["id"] for key in run("list")["items"]]
    assert run("revoke", str(made["id"])) == {"id": made["id"], "revoked": True}
    with pytest.raises(ApiError, match="unauthorized"):
        api.call("GET", "/v1/stats")


def test_the_intake_stores_an_event_of_a_rule_and_sets_an_invalid_message_aside(
    place: LocalStack, deployed: DeployedStack, api_url: str
) -> None:
    sqs, events = boto3.client("sqs"), boto3.client("events")
    intake, redrive = (
        sqs.get_queue_url(QueueName=f"{LOCAL.prefix}-{name}")["QueueUrl"]
        for name in ("intake", "intake-redrive")
    )
    arn = sqs.get_queue_attributes(QueueUrl=intake, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name="orders", EventPattern='{"source": ["shop.orders"]}')
    events.put_targets(Rule="orders", Targets=[{"Id": "intake", "Arn": arn}])
    try:
        sqs.send_message(QueueUrl=intake, MessageBody="not json")
        entry = {"Source": "shop.orders", "DetailType": "Order Created", "Detail": '{"order": 1}'}
        assert events.put_events(Entries=[entry])["FailedEntryCount"] == 0
        key = place.ask_admin({"action": "create_key", "name": "intake"})["key"]
        api = ApiClient(api_url, key)
        (event,) = eventually(
            lambda: api.call("GET", "/v1/events?event_type=Order_Created")["items"], "the event is stored"
        )
        assert json.loads(api.call("GET", f"/v1/events/{event['id']}")["payload"]) == {"order": 1}
        asked = {"QueueUrl": redrive, "MessageAttributeNames": ["All"], "VisibilityTimeout": 0}
        (refused,) = eventually(
            lambda: sqs.receive_message(**asked).get("Messages"), "a message is set aside"
        )
        assert refused["Body"] == "not json"
        assert refused["MessageAttributes"]["hooksaga_refusal"]["StringValue"].startswith("invalid_json")
        (found,) = failed_checks(deployed)["the redrive queues are empty"]
        assert "intake-redrive holds 1 message" in found
    finally:
        sqs.purge_queue(QueueUrl=redrive)
        events.remove_targets(Rule="orders", Ids=["intake"])
        events.delete_rule(Name="orders")


def eventually(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + 60
    while not (answer := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.5)
    return answer


async def test_a_failed_migration_stops_the_deployment_with_its_words(
    place: LocalStack, checkout: Path, api_url: str, certificates: Certificates
) -> None:
    """And what ran before goes on."""
    broken = new_migration(checkout, "9000_broken", "SELECT * FROM a_table_that_is_not_there;")
    with pytest.raises(DeployFailed, match='relation "a_table_that_is_not_there" does not exist'):
        place.deploy()
    broken.unlink()
    event = await deliver_one(place, api_url, certificates)
    assert event["sagas"][0]["status"] == "Completed"


async def test_an_upgrade_loses_nothing_that_was_under_way(
    place: LocalStack, checkout: Path, api_url: str, certificates: Certificates
) -> None:
    key = place.ask_admin({"action": "create_key", "name": "upgrade"})["key"]
    api = ApiClient(api_url, key)
    port, event_id = await accepted_but_not_delivered(api, certificates)
    new_migration(checkout, "9000_note", "ALTER TABLE events ADD COLUMN note text;")
    await asyncio.to_thread(place.deploy)
    receiver = Receiver()
    running = await serve(port=port, certificates=certificates, receiver=receiver)
    event = await asyncio.to_thread(wait_for, api, event_id, "Completed")
    await running.stop()
    assert [attempt["status"] for attempt in event["sagas"][0]["attempts"]][-1] == "Completed"
    assert event["sagas"][0]["attempts"][0]["error_code"] == "connection_refused"


def test_nothing_is_left_when_it_is_destroyed(place: LocalStack, api_url: str) -> None:
    assert place.leftovers()
    place.destroy()
    assert place.leftovers() == []


async def accepted_but_not_delivered(api: ApiClient, certificates: Certificates) -> tuple[int, str]:
    """An event whose receiver went away after it was verified: its port, and the event's id."""
    running = await serve(certificates=certificates)
    wanted = {
        "event_type": "upgrade.checked",
        "callback_url": f"{running.url}/ok/upgrade",
        "base_delay_seconds": RETRY_SECONDS,
    }
    subscription = await asyncio.to_thread(api.call, "POST", "/v1/subscriptions", json=wanted)
    await asyncio.to_thread(api.call, "POST", f"/v1/subscriptions/{subscription['id']}/verify")
    await running.stop()
    sent = {"event_type": "upgrade.checked", "payload": {}}
    event = await asyncio.to_thread(api.call, "POST", "/v1/events", json=sent)
    await asyncio.to_thread(wait_for, api, event["id"], "PendingRetry")
    return int(running.url.rsplit(":", 1)[1]), event["id"]


def wait_for(api: ApiClient, event_id: str, status: str) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while True:
        event = api.call("GET", f"/v1/events/{event_id}")
        if [saga["status"] for saga in event["sagas"]] == [status]:
            return event
        assert time.monotonic() < deadline, event
        time.sleep(0.5)
