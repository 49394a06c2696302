"""`hooksaga doctor --stack`: the checks of a deployment on AWS."""

import json
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from hooksaga.aws.deployed_stack import DeployedStack, StackFault, reseal_by
from hooksaga.aws.deployment import VISIBILITY_FACTOR
from hooksaga.doctor.check import Check
from hooksaga.doctor.database import RIGHTS, judge
from hooksaga.doctor.sealed import SECRETS, judge_headers, judge_secrets

READERS = ("intake", "router", "orchestrator", "delivery")
TICKED = ("router", "orchestrator", "lease_cleaner", "health_monitor", "retention", "admin")
FUNCTIONS = ("ingest", "intake", "subscriptions", "console", *TICKED, "delivery", "migrate")


class StackDoctor:
    """Checks the parts of one stack, and asks its admin function for the facts of the database."""

    def __init__(self, stack: DeployedStack) -> None:
        self._stack = stack

    def check(self) -> Iterator[Check]:
        """Yield all checks in turn. A check that cannot be made is a fault and does not prevent the others."""
        checks: dict[str, Callable[[], list[str]]] = {
            "functions are active": self._functions,
            "visibility timeouts exceed function timeouts, and function timeouts the POST timeout": self._times,
            "each queue has an enabled consumer with partial batch responses": self._mappings,
            "the redrive queues are empty": self._redrives,
            "the ticks are enabled": self._ticks,
            "the database answers the admin function": self._database,
            "no alarm is active": self._alarms,
        }
        for name, look in checks.items():
            try:
                yield Check(name, look())
            except (BotoCoreError, ClientError, StackFault) as error:
                yield Check(name, [str(error)])
        yield from self._schema()
        yield from self._secrets()

    def _schema(self) -> Iterator[Check]:
        """Judge the database by this version: run it from the deployed version."""
        try:
            yield from judge(self._stack.ask_admin({"action": "doctor"}))
        except StackFault as fault:
            yield Check(RIGHTS, [str(fault)])

    def _secrets(self) -> list[Check]:
        def ask(action: dict[str, Any]) -> dict[str, Any]:
            return self._stack.ask("subscriptions", action)

        try:
            secrets = reseal_by(ask, "reseal_secrets", dry_run=True)
            headers = reseal_by(ask, "reseal_headers", dry_run=True)
        except StackFault as fault:
            return [Check(SECRETS, [str(fault)])]
        return [judge_secrets(secrets), judge_headers(headers)]

    def _functions(self) -> list[str]:
        return [
            f"{name} is {state}: deploy again"
            for name in FUNCTIONS
            if (state := self._function(name).get("State", "Active")) != "Active"
        ]

    def _times(self) -> list[str]:
        faults = list[str]()
        for name in READERS:
            timeout = self._function(name)["Timeout"]
            for mapping in self._mappings_of(name):
                visibility = int(self._queue(mapping)["VisibilityTimeout"])
                if visibility < VISIBILITY_FACTOR * timeout:
                    faults.append(
                        f"{_queue_name(mapping)}: visibility {visibility} s, {name} can run for {timeout} s"
                    )
        delivery = self._function("delivery")
        lease = float(delivery["Environment"]["Variables"].get("HOOKSAGA_LEASE_SECONDS", 60))
        if lease <= delivery["Timeout"]:
            faults.append(f"delivery can run for {delivery['Timeout']} s, but a lease ends after {lease:g} s")
        return faults

    def _mappings(self) -> list[str]:
        faults = list[str]()
        for name in READERS:
            mappings = self._mappings_of(name)
            if not mappings:
                faults.append(f"{name} reads no queue")
            for mapping in mappings:
                if mapping["State"] not in ("Enabled", "Enabling", "Updating"):
                    faults.append(f"{_queue_name(mapping)}: its mapping to {name} is {mapping['State']}")
                if "ReportBatchItemFailures" not in mapping.get("FunctionResponseTypes", []):
                    faults.append(f"{_queue_name(mapping)}: one bad message would return its whole batch")
        return faults

    def _redrives(self) -> list[str]:
        faults = list[str]()
        for mapping in (one for name in READERS for one in self._mappings_of(name)):
            policy = json.loads(self._queue(mapping).get("RedrivePolicy", "{}"))
            if not policy:
                faults.append(f"{_queue_name(mapping)} has no redrive queue")
                continue
            redrive = policy["deadLetterTargetArn"].rsplit(":", 1)[1]
            waiting = int(self._attributes(redrive)["ApproximateNumberOfMessages"])
            if waiting:
                faults.append(f"{redrive} holds {waiting} messages: see docs/operations/alarms.md")
        return faults

    def _ticks(self) -> list[str]:
        events: Any = self._stack.client("events")
        states = {
            name: events.describe_rule(Name=f"{self._stack.name}-{name}-tick")["State"] for name in TICKED
        }
        return [f"the tick of {name} is {state}" for name, state in states.items() if state != "ENABLED"]

    def _database(self) -> list[str]:
        stats = self._stack.ask_admin({"action": "stats"})
        oldest = stats["oldest_due_seconds"] or 0
        return (
            [f"the oldest due delivery has waited {oldest:.0f} s: the orchestrator does not run"]
            if oldest > 180
            else []
        )

    def _alarms(self) -> list[str]:
        cloudwatch: Any = self._stack.client("cloudwatch")
        found = cloudwatch.describe_alarms(AlarmNamePrefix=self._stack.name, StateValue="ALARM")
        return [f"{one['AlarmName']}: see docs/operations/alarms.md" for one in found["MetricAlarms"]]

    @cached_property
    def _sqs(self) -> Any:
        return self._stack.client("sqs")

    def _function(self, name: str) -> dict[str, Any]:
        return self._stack.functions.get_function_configuration(FunctionName=f"{self._stack.name}-{name}")

    def _mappings_of(self, name: str) -> list[dict[str, Any]]:
        found = self._stack.functions.list_event_source_mappings(FunctionName=f"{self._stack.name}-{name}")
        return found["EventSourceMappings"]

    def _queue(self, mapping: dict[str, Any]) -> dict[str, str]:
        return self._attributes(_queue_name(mapping))

    def _attributes(self, queue: str) -> dict[str, str]:
        url = self._sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        return self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]


def _queue_name(mapping: dict[str, Any]) -> str:
    return str(mapping["EventSourceArn"]).rsplit(":", 1)[1]
