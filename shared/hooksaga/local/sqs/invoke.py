"""`hooksaga invoke FUNCTION FILE`: runs one function with one event from a file, under AWS's runtime client.

It uses the configured database, or the embedded one. Queues are used if their variables are set; without them messages
are not sent, which delays events but loses none.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.adapters.secret_box import generate_key
from hooksaga.aws.deployment import local_environment
from hooksaga.local.sqs.function_table import environment_of, function_kinds, function_spec
from hooksaga.local.sqs.functions import LambdaFunction
from hooksaga.local.sqs.ministack import given_endpoint
from hooksaga.local.sqs.runtime_api import Outcome
from hooksaga.local.system import LOCAL_KEY_NAME, read_or_create
from hooksaga.operations.api_keys import create_api_key, generate_api_key
from hooksaga.runtime.settings import Settings

PLACEHOLDER_KEY = "hs_replace_me"
"""Placeholder of an API key in the sample events."""


async def invoke_event(settings: Settings, address: DatabaseAddress, function: str, event: str) -> Outcome:
    """Invoke the function with an event in JSON; the samples' key is replaced by this machine's.

    Raises ValueError for invalid JSON.
    """
    key = await _ensure_api_key(settings, address)
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


async def _ensure_api_key(settings: Settings, address: DatabaseAddress) -> str:
    given = settings.api_key
    key = (
        given.get_secret_value() if given else read_or_create(settings.data_dir / "api_key", generate_api_key)
    )
    session = Session(address, Role.ADMIN)
    try:
        await session.run(lambda connection: create_api_key(connection, key, name=LOCAL_KEY_NAME))
    finally:
        await session.close()
    return key


def _environment(settings: Settings, address: DatabaseAddress) -> dict[str, str]:
    keys = settings.secrets_keys or [read_or_create(settings.data_dir / "secrets.key", generate_key)]
    endpoint = given_endpoint()
    return environment_of(
        settings,
        HOOKSAGA_DATABASE_URL=address.url,
        HOOKSAGA_SECRETS_KEY=",".join(keys),
        **({"AWS_ENDPOINT_URL": endpoint} if endpoint else {}),
    )
