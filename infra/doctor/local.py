"""Everything that can be looked at on this machine, whether the system runs or not. It changes nothing; an embedded
database that is there and does not run is started for it and stopped again."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from infra.commands.database import open_database, run_as
from infra.commands.failures import WrongUse
from infra.doctor import machine
from infra.doctor.check import Check, skipped
from infra.doctor.database import judge, judge_server
from infra.doctor.network import check_egress
from infra.doctor.queues import check_queues
from infra.local.database_account import NoDatabaseAccount
from infra.local.postgres import EmbeddedPostgresError
from infra.local.system import has_secrets_key, secret_box
from shared.adapters.database import DatabaseAddress, Role, Session
from shared.core.errors import DatabaseUnavailable, HooksagaError, SchemaMismatch
from shared.runtime.settings import InvalidSettings, Settings, read_settings
from shared.stages.doctor import read_facts, read_server, try_to_store
from shared.stages.inspect import check_alive
from shared.stages.reseal_headers import reseal_headers_batch
from shared.stages.reseal_secrets import Resealed, reseal_all, reseal_batch

SETTINGS = "settings"
DATABASE = "the database answers"
LOGINS = "each function can log in, and its sessions are as they must be"
STORES = "an event can be stored"
SECRETS = "every signing secret can be opened"
HEADERS = "every header value of a subscription is sealed, and can be opened"


async def examine(*, port: int, probe: str | None) -> AsyncIterator[Check]:
    """Each check as it is made."""
    yield machine.check_versions()
    try:
        settings = read_settings()
    except InvalidSettings as error:
        yield Check(SETTINGS, [f"{line}" for line in str(error).splitlines()], "in the environment")
        return
    yield Check(SETTINGS, seen="in the environment, each in its range")
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
    """The configured one, or the embedded one."""
    try:
        async with open_database() as address:
            yield Check(DATABASE, seen="HOOKSAGA_DATABASE_URL" if settings.database_url else "embedded")
            async for check in _examine(settings, replace(address, unit_timeout_seconds=60)):
                yield check
    except WrongUse:
        yield skipped(DATABASE, "there is none yet: `hooksaga up` makes it")
    except (DatabaseUnavailable, EmbeddedPostgresError, NoDatabaseAccount) as error:
        advice = "check HOOKSAGA_DATABASE_URL" if settings.database_url else "see its server.log"
        yield Check(DATABASE, [f"{str(error).splitlines()[0]}: {advice}"])


async def _examine(settings: Settings, address: DatabaseAddress) -> AsyncIterator[Check]:
    server = await run_as(address, Role.OWNER, read_server)
    if any(check.faults for check in judge_server(server)):
        for check in judge_server(server):
            yield check
        return
    try:
        for check in judge(await run_as(address, Role.OWNER, read_facts)):
            yield check
    except SchemaMismatch:
        yield Check("the schema is of this version", ["there is none: run `hooksaga migrate`"], "empty")
        return
    yield await _check_logins(address)
    yield await _check_storing(address)
    for check in await _check_secrets(settings, address):
        yield check


async def _check_logins(address: DatabaseAddress) -> Check:
    """Passwords of roles are derived from the owner's: changing that one alone locks them all out."""
    faults = list[str]()
    roles = [role for role in Role if role is not Role.OWNER]
    for role in roles:
        try:
            await run_as(address, role, check_alive)
        except DatabaseUnavailable as error:
            reason = str(error).splitlines()[0]
            cure = "" if "hooksaga migrate" in reason else "; `hooksaga migrate` sets its password anew"
            faults.append(f"{role}: {reason}{cure}")
    return Check(LOGINS, faults, f"{len(roles) - len(faults)} of {len(roles)} roles")


async def _check_storing(address: DatabaseAddress) -> Check:
    """By doing it, as the role that does it: whatever is in the way of producers is in the way here."""
    try:
        await run_as(address, Role.INGEST, try_to_store)
    except HooksagaError as error:
        return Check(
            STORES, [f"{str(error).splitlines()[0]}: until that is put right producers are told 503"]
        )
    return Check(STORES, seen="one was stored, and taken back")


async def _check_secrets(settings: Settings, address: DatabaseAddress) -> list[Check]:
    if not has_secrets_key(settings):
        return [skipped(SECRETS, "there is no key yet: `hooksaga up` makes one")]
    try:
        box = secret_box(settings)
    except ValueError as error:
        return [Check(SECRETS, [f"{settings.data_dir / 'secrets.key'}: {error}; restore the file"])]
    session = Session(address, Role.SUBSCRIPTIONS)
    try:
        secrets = await reseal_all(session, partial(reseal_batch, box=box, dry_run=True))
        headers = await reseal_all(session, partial(reseal_headers_batch, box=box, dry_run=True))
    finally:
        await session.close()
    return [judge_secrets(secrets), judge_headers(headers)]


def judge_secrets(done: Resealed) -> Check:
    """What a dry run of `secrets reseal` has found."""
    faults = [
        f"subscription {one}: no configured key opens its secret, so nothing can be signed for it: bring its key back, "
        f"or `hooksaga subscriptions rotate-secret {one}`"
        for one in done.unreadable
    ]
    older = f", {done.changed} of them under an older key" if done.changed else ""
    return Check(SECRETS, faults, f"{done.checked} secrets{older}")


def judge_headers(done: Resealed) -> Check:
    """What a dry run of `secrets reseal` has found in the headers of subscriptions."""
    faults = [
        f"subscription {one}: no configured key opens its headers, so nothing can be sent to it: bring its key back, "
        f"or `hooksaga subscriptions update {one} --header NAME=VALUE`, for each of them"
        for one in done.unreadable
    ]
    if done.in_clear:
        faults.append(
            f"{len(done.in_clear)} subscriptions have header values in clear: `hooksaga secrets reseal` seals them"
        )
    older = done.changed - len(done.in_clear)
    seen = f", {older} of them under an older key" if older > 0 else ""
    return Check(HEADERS, faults, f"{done.checked} subscriptions with headers{seen}")
