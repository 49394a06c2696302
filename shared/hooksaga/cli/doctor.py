"""`hooksaga doctor`: is this machine, or a deployment, as it must be?"""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from hooksaga.cli.failures import FAILED
from hooksaga.cli.terminal import AsJson, printable, say, show_json

if TYPE_CHECKING:
    from hooksaga.doctor.check import Check

Stack = Annotated[
    str | None,
    typer.Option(
        "--stack",
        help="Look at a deployment on AWS instead, such as hooksaga-dev.",
        show_default="this machine",
    ),
]


def doctor(
    stack: Stack = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Where `hooksaga up` is, or will be, to listen.")
    ] = 8080,
    probe: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="https:// address to reach, as a delivery would.", show_default="none"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check what must be so before the first event, or after any change. Exit code 1 when something is ill.

    Works while `hooksaga up` runs and while it does not; an embedded database that does not run is started for it and
    stopped again. Of a deployment: account, region and endpoint are those of AWS's own variables and profiles.
    """
    checks = _of_stack(stack, as_json) if stack else asyncio.run(_of_this_machine(port, probe, as_json))
    if as_json:
        show_json(
            {"ok": not any(check.faults for check in checks), "checks": [_content(one) for one in checks]}
        )
    raise typer.Exit(FAILED if any(check.faults for check in checks) else 0)


def _of_stack(stack: str, as_json: bool) -> "list[Check]":
    from hooksaga.aws.deployed_stack import DeployedStack
    from hooksaga.doctor.stack import StackDoctor

    return [_shown(check, as_json) for check in StackDoctor(DeployedStack(stack)).check()]


async def _of_this_machine(port: int, probe: str | None, as_json: bool) -> "list[Check]":
    from hooksaga.doctor.local import examine

    return [_shown(check, as_json) async for check in examine(port=port, probe=probe)]


def _shown(check: "Check", as_json: bool) -> "Check":
    """Each line as soon as it is known: some checks take a while."""
    if not as_json:
        say(f"{check.health:<8}{check.name}" + (f": {printable(check.seen)}" if check.seen else ""))
        for fault in check.faults:
            say("          " + printable(fault))
    return check


def _content(check: "Check") -> dict[str, object]:
    return {"name": check.name, "health": check.health.value, "seen": check.seen, "faults": check.faults}
