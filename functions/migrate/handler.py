"""Migrate: runs before new code does, as the owner, whose secret no other function can read (spec §5)."""

from typing import Any

from shared.adapters.migrations import migrate
from shared.runtime.function import Event, function_address
from shared.runtime.settings import read_settings
from shared.runtime.telemetry import note_migration_waits
from shared.runtime.triggers import Trigger, expect


def handler(event: Event, context: Any) -> Any:
    """A request of CloudFormation in, or `{}` by hand; `{"applied": [names]}` out.

    A failed migration raises, which stops the deploy. A deployment that is taken away (CloudFormation's `Delete`)
    leaves the schema as it is.
    """
    expect(event, Trigger.DEPLOYMENT, Trigger.EMPTY)
    if event.get("RequestType") == "Delete":
        return {"applied": []}
    return {"applied": migrate(function_address(read_settings()), tell=note_migration_waits)}
