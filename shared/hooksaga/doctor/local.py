"""Checks of this machine, whether the system runs or not. They change nothing; an embedded database that is stopped is
started for them and stopped again."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.core.errors import DatabaseUnavailable, HooksagaError, SchemaMismatch
from hooksaga.doctor import machine
from hooksaga.doctor.check import Check, skipped
from hooksaga.doctor.database import judge, judge_server
from hooksaga.doctor.network import check_egress
from hooksaga.doctor.queues import check_queues
from hooksaga.doctor.sealed import SECRETS, judge_headers, judge_secrets
from hooksaga.doctor.surroundings import NO_POOLER, check_pooler, check_surroundings
from hooksaga.local.database_account import NoDatabaseAccount
from hooksaga.local.given_database import NoDatabaseYet, open_database, run_as
from hooksaga.local.postgres import EmbeddedPostgresError
from hooksaga.local.system import has_secrets_key, secret_box
from hooksaga.operations.doctor import read_facts, read_server, try_to_store
from hooksaga.operations.inspect import check_alive
from hooksaga.operations.reseal_headers import reseal_headers_batch
from hooksaga.operations.reseal_secrets import reseal_all, reseal_batch
from hooksaga.runtime.settings import InvalidSettings, Settings, read_settings

SETTINGS = "settings"
DATABASE = "the database answers"
LOGINS = "each function can log in, with the required session settings"
STORES = "an event can be stored"


async def examine(*, port: int, probe: str | None) -> AsyncIterator[Check]:
    yield machine.check_versions()
    try:
        settings = read_settings()
    except InvalidSettings as error:
        yield Check(SETTINGS, [f"{line}" for line in str(error).splitlines()], "in the environment")
        return
    yield Check(SETTINGS, seen="all settings are valid")
    yield machine.check_times(settings)
    yield machine.check_data_folder(settings.data_dir)
    yield machine.check_disk(settings.data_dir)
    yield machine.check_trust(settings)
    yield machine.check_port(port)
    yield check_queues(settings)
    for check in await check_egress(settings, probe):
        yield check
    async for check in examine_database(settings):
        yield check


async def examine_database(settings: Settings) -> AsyncIterator[Check]:
    try:
        async with open_database() as address:
            yield Check(DATABASE, seen="HOOKSAGA_DATABASE_URL" if settings.database_url else "embedded")
            async for check in _examine(settings, replace(address, unit_timeout_seconds=60)):
                yield check
    except NoDatabaseYet:
        yield skipped(DATABASE, "not created yet: `hooksaga up` creates it")
    except (DatabaseUnavailable, EmbeddedPostgresError, NoDatabaseAccount) as error:
        advice = "check HOOKSAGA_DATABASE_URL" if settings.database_url else "see its server.log"
        yield Check(DATABASE, [f"{str(error).splitlines()[0]}: {advice}"])


async def _examine(settings: Settings, address: DatabaseAddress) -> AsyncIterator[Check]:
    pooler = await check_pooler(address)
    yield pooler
    if pooler.faults:
        return
    server = await run_as(address, Role.OWNER, read_server)
    if any(check.faults for check in judge_server(server)):
        for check in judge_server(server):
            yield check
        return
    async for check in check_surroundings(address, is_pooled=pooler.seen != NO_POOLER):
        yield check
    try:
        for check in judge(await run_as(address, Role.OWNER, read_facts)):
            yield check
    except SchemaMismatch:
        yield Check(
            "the schema matches this version", ["the database is empty: run `hooksaga migrate`"], "empty"
        )
        return
    yield await _check_logins(address)
    yield await _check_storing(address)
    for check in await _check_secrets(settings, address):
        yield check


async def _check_logins(address: DatabaseAddress) -> Check:
    """Check the logins. Role passwords derive from the owner's, so a change of that one alone locks out all roles."""
    faults = list[str]()
    roles = [role for role in Role if role is not Role.OWNER]
    for role in roles:
        try:
            await run_as(address, role, check_alive)
        except DatabaseUnavailable as error:
            reason = str(error).splitlines()[0]
            cure = "" if "hooksaga migrate" in reason else "; `hooksaga migrate` sets its password again"
            faults.append(f"{role}: {reason}{cure}")
    return Check(LOGINS, faults, f"{len(roles) - len(faults)} of {len(roles)} roles")


async def _check_storing(address: DatabaseAddress) -> Check:
    """Store and roll back an event as the ingest role, so that anything that would block producers blocks the check."""
    try:
        await run_as(address, Role.INGEST, try_to_store)
    except HooksagaError as error:
        return Check(STORES, [f"{str(error).splitlines()[0]}: until this is fixed, producers get 503"])
    return Check(STORES, seen="an event was stored and rolled back")


async def _check_secrets(settings: Settings, address: DatabaseAddress) -> list[Check]:
    if not has_secrets_key(settings):
        return [skipped(SECRETS, "no key yet: `hooksaga up` creates one")]
    try:
        box = secret_box(settings)
    except ValueError as error:
        return [Check(SECRETS, [f"{settings.data_dir / 'secrets.key'}: {error}; restore the file"])]
    async with Session(address, Role.SUBSCRIPTIONS) as session:
        secrets = await reseal_all(session, partial(reseal_batch, box=box, dry_run=True))
        headers = await reseal_all(session, partial(reseal_headers_batch, box=box, dry_run=True))
    return [judge_secrets(secrets), judge_headers(headers)]
