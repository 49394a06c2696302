"""Checks of a database: version, migrations, roles, rights, guards, clock. Used for an embedded database and for RDS,
whose facts the admin function returns."""

import time
from collections.abc import Iterator
from typing import Any

from hooksaga.adapters import session_settings
from hooksaga.adapters.migrations import IAM_GROUP
from hooksaga.doctor.check import Check, skipped
from hooksaga.doctor.documented import Documented, documented
from hooksaga.doctor.rights import Facts, wrong_rights
from hooksaga.operations.doctor import PRODUCERS, RETENTION_ROLE

MIN_VERSION = 150_000
MAX_CONNECTIONS = 0.9
MAX_IDLE_LOG_BYTES = 2**30
MAX_CLOCK_SECONDS = 10.0
"""Only the database's clock decides leases and due times; this process's clock dates signatures, which are valid for
minutes."""

TIMEOUTS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
PIPELINE_ROLES = ("router_worker", "saga_orchestrator", "job_worker", "lease_cleaner")
RULED_OUT = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
"""Plan types that read a whole backlog, which the planner prefers with statistics of an idle time."""

WRITES = "the server accepts writes"
LIMITS = "no limit is close to stopping writes"
MIGRATIONS = "the schema matches this version"
ROLES = "the roles have no extra privileges, and have time limits and plan settings"
RIGHTS = "the rights of each role match sql/README.md"
GUARDS = "the guards are enabled"


def judge_server(server: dict[str, Any]) -> list[Check]:
    old = server["version_number"] < MIN_VERSION
    closed = server["is_standby"] or server["is_read_only"]
    state = "read-only" if closed else "read and write"
    return [
        Check(
            "PostgreSQL is 15 or newer",
            ["the statements need PostgreSQL 15 or newer: upgrade the server"] if old else [],
            server["version"],
        ),
        Check(WRITES, list(_closed_to_writes(server)), state),
    ]


def _closed_to_writes(server: dict[str, Any]) -> Iterator[str]:
    if server["is_standby"]:
        yield "this is a standby: point to the primary"
    elif server["is_read_only"]:
        yield (
            f"default_transaction_read_only is on (set by: {server['read_only_by']}), for example after a failover or "
            "because the disk is nearly full: connect to the server that accepts writes, or fix the cause and "
            "switch it off"
        )


def judge(facts: Facts, now: float | None = None) -> list[Check]:
    """Run all checks, in the order of their dependencies. now: this process's clock, Unix seconds."""
    wanted = documented()
    migrations = _judge_migrations(wanted, facts)
    checks = [*judge_server(facts["server"]), migrations]
    if migrations.faults:
        checks += [skipped(name, "the schema belongs to another version") for name in (ROLES, RIGHTS, GUARDS)]
    else:
        checks += [_judge_roles(wanted, facts), _judge_rights(wanted, facts), _judge_guards(wanted, facts)]
    checks.append(_judge_limits(facts))
    return [*checks, _judge_clock(facts["server"]["now_seconds"], time.time() if now is None else now)]


def _judge_migrations(wanted: Documented, facts: Facts) -> Check:
    applied = {row["name"] for row in facts["applied_migrations"]}
    missing = sorted(set(wanted.migrations) - applied)
    unknown = sorted(applied - set(wanted.migrations))
    faults = list[str]()
    if missing:
        faults.append(f"not applied: {', '.join(missing)}; run `hooksaga migrate`")
    if unknown:
        faults.append(f"unknown to this version: {', '.join(unknown)}; use the version that migrated it")
    return Check(MIGRATIONS, faults, f"{len(applied)} of {len(wanted.migrations)} migrations applied")


def _judge_roles(wanted: Documented, facts: Facts) -> Check:
    by_name = {row["name"]: row for row in facts["roles"]}
    faults = [fault for role in wanted.roles for fault in _wrong_role(role, by_name.get(role))]
    owners = facts["owners"]
    if others := sorted(set(owners["of_pruning"]) - {RETENTION_ROLE}):
        faults.append(f"functions of retention are owned by {', '.join(others)}: run `hooksaga migrate`")
    if shared := sorted(set(owners["of_tables"]) & set(wanted.roles)):
        faults.append(f"{', '.join(shared)} owns tables: ALTER TABLE … OWNER TO the user who migrates")
    return Check(ROLES, faults, f"{len(by_name.keys() & set(wanted.roles))} roles")


def _wrong_role(role: str, row: dict[str, Any] | None) -> Iterator[str]:
    if row is None:
        yield f"there is no role {role}: run `hooksaga migrate` on an empty database of this server"
        return
    if row["has_powers"]:
        yield (
            f"{role} has privileges that no function needs: "
            f"ALTER ROLE {role} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
        )
    yield from (f"{role} is a member of {group}: REVOKE {group} FROM {role}" for group in _groups(row))
    if role in (RETENTION_ROLE, PRODUCERS):
        yield from _wrong_group(role, row)
        return
    if not row["logs_in"]:
        yield f"{role} cannot log in: ALTER ROLE {role} LOGIN"
    yield from _wrong_settings(role, row["settings"])


def _wrong_settings(role: str, settings: list[str]) -> Iterator[str]:
    limited = {setting.split("=", 1)[0] for setting in settings if not setting.endswith("=0")}
    for name in TIMEOUTS:
        if name not in limited:
            yield f"{role} has no {name}: ALTER ROLE {role} SET {name} = '30s'"
    for name in RULED_OUT if role in PIPELINE_ROLES else ():
        if f"{name}=off" not in settings:
            yield f"{role} can get plans that read a whole backlog: ALTER ROLE {role} SET {name} = off"
    found = {name.lower(): value for name, value in (setting.split("=", 1) for setting in settings)}
    wanted = {
        **session_settings.of_role(role),
        **session_settings.OF_NEWER_SERVERS,
        **session_settings.GUARDED,
    }
    for name, value in wanted.items():
        if found.get(name, value) != value:
            yield f"sessions of {role} have {name} = {found[name]}, not {value}: run `hooksaga migrate`"


def _groups(row: dict[str, Any]) -> list[str]:
    return [group for group in row["member_of"] if group != IAM_GROUP]


def _wrong_group(role: str, row: dict[str, Any]) -> Iterator[str]:
    """Applications may be members of PRODUCERS; nobody may be a member of RETENTION_ROLE."""
    if row["logs_in"]:
        yield f"{role} can log in: ALTER ROLE {role} NOLOGIN"
    for user in row["used_by"] if role == RETENTION_ROLE else ():
        yield f"{user} can act as {role}: REVOKE {role} FROM {user}"


def _judge_rights(wanted: Documented, facts: Facts) -> Check:
    faults = list(wrong_rights(wanted, facts))
    if facts["server"]["public_may_create"]:
        faults.append(
            "every role can create objects in schema public: REVOKE CREATE ON SCHEMA public FROM PUBLIC"
        )
    return Check(RIGHTS, faults, f"{sum(len(letters) for letters in wanted.rights.values())} rights")


def _judge_guards(wanted: Documented, facts: Facts) -> Check:
    """'O' and 'A' triggers fire in ordinary sessions; 'D' never, 'R' on replicas only."""
    found = {(row["object"], row["name"]): row["enabled"] for row in facts["triggers"]}
    faults = [
        f"{table}: {name} is disabled: ALTER TABLE {table} ENABLE TRIGGER {name}"
        for (table, name), enabled in sorted(found.items())
        if (table, name) in wanted.triggers and enabled not in ("O", "A")
    ]
    for table, name in sorted(wanted.triggers - found.keys()):
        faults.append(f"{table}: {name} is missing: its CREATE TRIGGER is in sql/schema or sql/migrations")
    for table, name in sorted(found.keys() - wanted.triggers):
        faults.append(f"{table}: {name} does not belong to hooksaga: DROP TRIGGER {name} ON {table}")
    if facts["server"]["triggers_for"] != "origin":
        faults.append("session_replication_role is not origin, which disables the guards: reset it")
    return Check(GUARDS, faults, f"{len(found)} triggers")


def _judge_limits(facts: Facts) -> Check:
    limits = facts["limits"]
    faults = [*_used_up_numbers(facts), *_log_that_stays(facts["idle_slots"])]
    used, most = limits["connections"], limits["connection_limit"]
    if used > most * MAX_CONNECTIONS:
        faults.append(f"{used} of {most} connections are in use: close some, or raise max_connections")
    if limits["synchronous_standbys"] and not limits["standbys"]:
        faults.append(
            f"synchronous_standby_names is {limits['synchronous_standbys']!r}, but no standby is connected: a COMMIT "
            "waits for one. Restore the standby, or remove its name"
        )
    return Check(LIMITS, faults, f"{used} of {most} connections")


def _used_up_numbers(facts: Facts) -> Iterator[str]:
    for row in facts["identity_near_its_end"]:
        yield (
            f"{row['table_name']} has used ids up to {row['last_id']} of {row['greatest_id']}: when they run out, "
            f"inserts fail. ALTER TABLE {row['table_name']} ALTER id SET MAXVALUE …, or RESTART at free ids"
        )
    for row in facts["transaction_ids_near_their_end"]:
        yield (
            f"database {row['database_name']} has {row['transactions']} transaction ids and {row['multixacts']} "
            "multixacts that vacuum has not freed, and stops at about 2 billion: end old "
            "transactions, see docs/operations/database.md, then run VACUUM (FREEZE)"
        )


def _log_that_stays(slots: list[dict[str, Any]]) -> Iterator[str]:
    for slot in slots:
        if slot["kept_bytes"] > MAX_IDLE_LOG_BYTES:
            yield (
                f"replication slot {slot['name']} is inactive and retains {slot['kept_bytes'] / 2**30:.1f} GiB of WAL: "
                f"restart its reader, or SELECT pg_drop_replication_slot('{slot['name']}')"
            )


def _judge_clock(database_seconds: float, now: float) -> Check:
    apart = abs(now - database_seconds)
    fault = f"the clocks differ by {apart:.0f} s: synchronize both with NTP"
    return Check(
        "the local clock agrees with the database's",
        [fault] if apart > MAX_CLOCK_SECONDS else [],
        f"{apart:.1f} s",
    )
