"""The clients of AWS: they make the listed calls only, and note each."""

import os
from collections import Counter
from typing import Any

import boto3

from infra.proof.calls import OPERATIONS


class CallNotListed(RuntimeError):
    """A step calls an operation that infra/proof/calls.py does not list, so the printed policy would not allow it."""


class Account:
    """The account of AWS's variables and profiles. Replaces boto3's default session, whose clients the doctor uses."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
            # The CDK reads the first and boto3 the second; commands that are started inherit both.
            os.environ.update(AWS_REGION=region, AWS_DEFAULT_REGION=region)
        boto3.setup_default_session()
        self._session: Any = boto3.DEFAULT_SESSION
        self._session.events.register("before-call", self._note)

    def client(self, service: str) -> Any:
        return self._session.client(service)

    def number(self) -> str:
        """Return the account's number, which is never shown."""
        return self.client("sts").get_caller_identity()["Account"]

    @property
    def region(self) -> str | None:
        return self._session.region_name

    def _note(self, model: Any, **_: Any) -> None:
        name = f"{model.service_model.service_name}:{model.name}"
        if name not in OPERATIONS:
            raise CallNotListed(f"{name} is not in infra/proof/calls.py")
        self.calls[name] += 1
