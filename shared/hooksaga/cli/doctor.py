"""`hooksaga doctor`: checks of this machine or of a deployment."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from hooksaga.cli.failures import FAILED
from hooksaga.cli.terminal import AsJson, echo, printable, show_json

if TYPE_CHECKING:
    from hooksaga.doctor.check import Check

Stack = Annotated[
    str | None,
    typer.Option(
        "--stack",
        help="Check a deployment on AWS, such as hooksaga-dev.",
        show_default="this machine",
    ),
]


def doctor(
    stack: Stack = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of `hooksaga up`.")] = 8080,
    probe: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="https:// URL to connect to, as a delivery does.", show_default="none"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the configuration of this machine or of a deployment. Exit code 1 if a check fails.

    Works whether or not `hooksaga up` runs. An embedded database that is not running is started, and stopped
    afterwards. For a deployment, account, region and endpoint come from AWS's variables and profiles.
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
    """Print each line at once, because some checks take a while."""
    if not as_json:
        echo(f"{check.health:<8}{check.name}" + (f": {printable(check.seen)}" if check.seen else ""))
        for fault in check.faults:
            echo("          " + printable(fault))
    return check


def _content(check: "Check") -> dict[str, object]:
    return {"name": check.name, "health": check.health.value, "seen": check.seen, "faults": check.faults}
