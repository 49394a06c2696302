"""The steps of docs/operations/keys.md for the key that seals signing secrets, with every restart that they name. The
receiver's secret stays the same all the way, and each delivery is signed with it and has its headers."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hooksaga.adapters.secret_box import generate_key
from hooksaga.local.tls import Certificates
from tests.api.running_system import RunningSystem
from tests.cli.conftest import runner_with
from tests.e2e.recorder import Recorder
from tests.e2e.world import Subscriber, World, assert_signed

OLD, NEW = generate_key(), generate_key()


@contextmanager
def started_with(
    keys: str, database: str, folder: Path, recorder: Recorder, certificates: Certificates
) -> Iterator[World]:
    running = RunningSystem(
        folder,
        database_url=database,
        ca_file=certificates.ca,
        secrets_key=keys,
        max_retry_limit=1,
        http_timeout_seconds=2,
        http_connect_timeout_seconds=2,
    )
    try:
        yield World(running, recorder)
    finally:
        running.stop()


def assert_delivers(world: World, subscriber: Subscriber) -> None:
    assert world.ended(world.post(subscriber))["status"] == "Completed"
    arrived = world.recorder.events(subscriber.path)[-1]
    assert_signed(arrived, subscriber.secret)
    assert arrived.header("authorization") == "Bearer theirs"


def resealed(changed: int = 0, unreadable: Sequence[int] = ()) -> dict[str, object]:
    return {"checked": 2, "changed": changed, "unreadable": list(unreadable), "locked": []}


def test_the_old_key_is_replaced_and_then_not_missed(
    module_database: str, folder: Path, recorder: Recorder, certificates: Certificates
) -> None:
    place = (module_database, folder, recorder, certificates)

    def reseal(keys: str, *options: str) -> dict[str, object]:
        run = runner_with({"HOOKSAGA_DATABASE_URL": module_database, "HOOKSAGA_SECRETS_KEY": keys})
        result = run("secrets", "reseal", "--json", *options)
        assert result.exit_code == (1 if json.loads(result.stdout)["unreadable"] else 0)
        return json.loads(result.stdout)

    with started_with(OLD, *place) as world:
        subscriber = world.subscribe(headers={"authorization": "Bearer theirs"})
        assert_delivers(world, subscriber)
    with started_with(f"{OLD},{NEW}", *place) as world:
        assert_delivers(world, subscriber)
    with started_with(f"{NEW},{OLD}", *place) as world:
        assert_delivers(world, subscriber)
        assert reseal(f"{NEW},{OLD}", "--dry-run") == resealed(changed=2)
        assert reseal(NEW) == resealed(unreadable=[subscriber.id])
        assert reseal(f"{NEW},{OLD}") == resealed(changed=2)
        assert_delivers(world, subscriber)
    with started_with(NEW, *place) as world:
        assert_delivers(world, subscriber)
        assert reseal(NEW) == resealed()
        world.assert_audit_finds_nothing()
