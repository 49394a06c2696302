"""`hooksaga invoke FUNCTION FILE`: runs one function with one event from a file, under AWS's runtime client.

It uses the configured database, or the embedded one. Queues are used if their variables are set; without them messages
are not sent, which delays events but loses none.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from hooksaga.adapters.database import DatabaseAddress
from hooksaga.aws.deployment import local_environment
from hooksaga.local.process_environment import environment_of
from hooksaga.local.sqs.function_table import function_kinds, function_spec
from hooksaga.local.sqs.functions import LambdaFunction
from hooksaga.local.sqs.ministack import given_endpoint
from hooksaga.local.sqs.runtime_api import Outcome
from hooksaga.local.system import ensure_api_key, secrets_keys
from hooksaga.runtime.settings import Settings

PLACEHOLDER_KEY = "hs_replace_me"
"""Placeholder of an API key in the sample events."""


async def invoke_event(settings: Settings, address: DatabaseAddress, function: str, event: str) -> Outcome:
    """Invoke the function with an event in JSON; the samples' key is replaced by this machine's.

    Raises ValueError for invalid JSON.
    """
    key = await ensure_api_key(settings, address)
    read: Any = json.loads(event.replace(PLACEHOLDER_KEY, key))
    with tempfile.TemporaryDirectory(prefix="hooksaga-invoke-") as logs:
        kind = function_kinds(local_environment(settings.lease_seconds))[function]
        spec = function_spec(function, kind, _environment(settings, address))
        deployed = LambdaFunction(spec, Path(logs))
        try:
            return await deployed.invoke(read)
        finally:
            await deployed.stop()


def outcome_content(outcome: Outcome) -> dict[str, Any]:
    ended = {"error": outcome.error} if outcome.error is not None else {"answer": outcome.payload}
    return {**ended, "milliseconds": round(outcome.seconds * 1000)}


def _environment(settings: Settings, address: DatabaseAddress) -> dict[str, str]:
    endpoint = given_endpoint()
    return environment_of(
        settings,
        HOOKSAGA_DATABASE_URL=address.url,
        HOOKSAGA_SECRETS_KEY=",".join(secrets_keys(settings)),
        **({"AWS_ENDPOINT_URL": endpoint} if endpoint else {}),
    )
