"""`--stack`: runs a command on a deployment on AWS, through one of its functions."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hooksaga.cli.failures import CommandFailed

Stack = Annotated[
    str | None,
    typer.Option(
        "--stack",
        help="Use a deployment on AWS, such as hooksaga-dev, through its functions.",
        show_default="this machine's database",
    ),
]


def ask_function(stack: str, function: str, action: Mapping[str, Any]) -> dict[str, Any]:
    """Return the function's answer to an action. Raises CommandFailed with the function's or AWS's error."""
    from hooksaga.aws.deployed_stack import DeployedStack, StackFault

    try:
        return DeployedStack(stack).ask(function, action)
    except StackFault as fault:
        raise CommandFailed(str(fault)) from fault
