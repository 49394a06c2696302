"""Migrate: runs before new code, as the owner, whose secret no other function can read."""

from typing import Any

from hooksaga.adapters.migrations import migrate
from hooksaga.aws.function import Event, function_address, log_in_context
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.runtime.settings import read_settings
from hooksaga.runtime.telemetry import note_migration_waits


def handler(event: Event, context: Any) -> Any:
    """Handle a request of CloudFormation, or `{}`: returns `{"applied": [names]}`.

    A failed migration raises an exception, which stops the deployment. CloudFormation's `Delete` leaves the schema
    unchanged.
    """
    log_in_context(context, is_first=True)
    expect(event, Trigger.DEPLOYMENT, Trigger.EMPTY)
    if event.get("RequestType") == "Delete":
        return {"applied": []}
    return {"applied": migrate(function_address(read_settings()), tell=note_migration_waits)}
