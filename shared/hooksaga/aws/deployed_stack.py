"""A deployed stack, and calls of its functions.

AWS's own environment variables and profiles select the account, region and endpoint.
"""

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from hooksaga.operations.reseal_secrets import Resealed, together

Ask = Callable[[dict[str, Any]], dict[str, Any]]
"""Sends an action to the subscriptions function."""


def reseal_by(ask: Ask, action: str, dry_run: bool) -> Resealed:
    """Return the result of resealing, with repeated calls until nothing is left."""
    content: dict[str, Any] = {"action": action, "dry_run": dry_run}
    answer = ask(content)
    done = _resealed(answer)
    while answer["next"] is not None:
        answer = ask({**content, "after": answer["next"]})
        done = together(done, _resealed(answer))
    return done


def _resealed(answer: dict[str, Any]) -> Resealed:
    in_clear, locked = tuple(answer.get("in_clear", ())), tuple(answer["locked"])
    unreadable = tuple(answer["unreadable"])
    return Resealed(answer["checked"], answer["changed"], unreadable, answer["next"], in_clear, locked)


class StackFault(RuntimeError):
    """AWS or the admin function refused. The message is for the user at the terminal."""


class DeployedStack:
    """A deployed stack. `name` is the prefix of all its resources, such as hooksaga-dev."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ask_admin(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Invoke the admin function with an action and return its result. Raises StackFault."""
        return self.ask("admin", action)

    def ask(self, function: str, action: Mapping[str, Any]) -> dict[str, Any]:
        """Invoke a function with an action and return its result. Raises StackFault."""
        try:
            answer = self.functions.invoke(
                FunctionName=f"{self.name}-{function}", Payload=json.dumps(action).encode()
            )
            content = json.loads(answer["Payload"].read())
        except (BotoCoreError, ClientError) as error:
            raise StackFault(
                f"{self.name}: {error}; is it deployed, and are these its account and region?"
            ) from error
        if "FunctionError" in answer:
            raise StackFault(
                f"{self.name}: its function {function} failed: {content.get('errorMessage', content)}"
            )
        if "error" in content:
            raise StackFault(f"{content['error']['code']}: {content['error']['detail']}")
        return content

    @cached_property
    def functions(self) -> Any:
        return self.client("lambda")

    @staticmethod
    def client(service: Any) -> Any:
        return boto3.client(service)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
