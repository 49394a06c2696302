"""`hooksaga doctor`: is a deployment as it must be?"""

from typing import Annotated

import typer

from infra.commands.failures import FAILED
from infra.commands.terminal import AsJson, printable, say, show_json

Stack = Annotated[str, typer.Option("--stack", help="Its name, such as hooksaga-dev.")]


def doctor(stack: Stack, as_json: AsJson = False) -> None:
    """Check a deployment on AWS: functions, queues, times, ticks, database, alarms. Exit code 1 when one is ill.

    Account, region and endpoint are those of AWS's own variables and profiles.
    """
    from infra.deployed_stack import DeployedStack

    checks = list(DeployedStack(stack).check())
    if as_json:
        show_json({"checks": [{"name": check.name, "faults": check.faults} for check in checks]})
    else:
        for check in checks:
            say(f"{check.name}: {'NO' if check.faults else 'yes'}")
            for fault in check.faults:
                say("    " + printable(fault))
    raise typer.Exit(FAILED if any(check.faults for check in checks) else 0)
