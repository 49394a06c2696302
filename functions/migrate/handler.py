"""Migrate: runs before new code does, as the owner, whose secret no other function can read."""

from typing import Any

from hooksaga.adapters.migrations import migrate
from hooksaga.aws.function import Event, function_address
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.runtime.settings import read_settings
from hooksaga.runtime.telemetry import note_migration_waits


def handler(event: Event, context: Any) -> Any:
    """A request of CloudFormation in, or `{}` by hand; `{"applied": [names]}` out.

    A failed migration raises, which stops the deploy. A deployment that is taken away (CloudFormation's `Delete`)
    leaves the schema as it is.
    """
    expect(event, Trigger.DEPLOYMENT, Trigger.EMPTY)
    if event.get("RequestType") == "Delete":
        return {"applied": []}
    return {"applied": migrate(function_address(read_settings()), tell=note_migration_waits)}
