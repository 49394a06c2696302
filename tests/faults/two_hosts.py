"""Runs in a network namespace of its own, with hooksaga; the receiver is in another one, behind a bad link.

Tells one story for each kind of weather that is named, and prints what came of it as a line of JSON. Started by
test_network.py.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import trustme

from hooksaga.local.tls import Certificates
from tests.api.running_system import new_name, wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.bad_link import RECEIVER, BadLink, Weather, enter_network
from tests.faults.crash_points import FaultFolder
from tests.faults.story import open_work
from tests.faults.stubborn import Stubborn

EVENTS = 60
CUT_SECONDS = 3.0
CUT = "the link cut in the middle of a POST of 250 kB, for longer than the attempt may take"

WEATHERS = {
    "20 % of all packets lost": Weather(lost=0.2),
    "packets delayed by 20 to 200 ms, so reordered": Weather(delay=(0.02, 0.2)),
    "30 % of all packets doubled": Weather(doubled=0.3, delay=(0, 0.02)),
    "10 % lost, 10 % doubled, all delayed by 10 to 100 ms": Weather(lost=0.1, doubled=0.1, delay=(0.01, 0.1)),
}


@contextmanager
def two_hosts(folder: Path) -> Iterator[tuple[Stubborn, BadLink]]:
    """hooksaga here, the receiver there."""
    there = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
    here = Path("/proc/self/ns/net").readlink()
    wait_until(lambda: Path(f"/proc/{there.pid}/ns/net").readlink() != here, "the other network is there")
    link = BadLink(there.pid, chance=random.Random(1))
    certificates = _certificates(folder)
    recorder = Recorder(certificates, RECEIVER, partial(enter_network, there.pid))
    up = UpProcess(
        folder,
        certificates,
        HOOKSAGA_EGRESS_ALLOW="10.9.0.0/24",
        HOOKSAGA_HTTP_TIMEOUT_SECONDS="2",
        HOOKSAGA_HTTP_CONNECT_TIMEOUT_SECONDS="1",
        HOOKSAGA_MAX_RETRY_LIMIT="30",
        HOOKSAGA_MAX_DELAY_SECONDS="0.5",
        HOOKSAGA_LEASE_SECONDS="35",
        HOOKSAGA_LOG_LEVEL="WARNING",
        **FaultFolder(folder / "faults").environment,
    )
    try:
        up.start()
        yield Stubborn(up, recorder), link
    finally:
        up.close()
        recorder.close()
        link.close()
        there.kill()
        there.wait()


def _certificates(folder: Path) -> Certificates:
    authority = trustme.CA()
    certificates = Certificates(folder / "ca.pem", folder / "server.pem")
    certificates.ca.write_bytes(authority.cert_pem.bytes())
    certificates.server.write_bytes(authority.issue_cert(RECEIVER).private_key_and_cert_chain_pem.bytes())
    return certificates


def in_weather(user: Stubborn, link: BadLink, weather: Weather) -> dict[str, object]:
    """Events of 1 byte to 100 kB while the weather lasts."""
    kind = new_name("weather")
    link.weather = Weather()
    _, path = user.subscribe(kind, "/ok")
    link.weather, before = weather, link.lost
    sizes = (1, 1000, 10_000, 100_000)
    events = [
        user.post(kind, new_name("key"), b'"%s"' % (b"x" * sizes[number % len(sizes)]))
        for number in range(EVENTS)
    ]
    return _settled(user, link, kind, path, events, before)


def cut_in_the_middle(user: Stubborn, link: BadLink) -> dict[str, object]:
    """The link is cut while a large POST is on its way, again and again, for longer than the attempt may take."""
    kind = new_name("cut")
    link.weather = Weather()
    _, path = user.subscribe(kind, "/ok")
    before, events = link.lost, list[str]()
    for _ in range(3):
        link.weather = Weather(delay=(0.005, 0.01))
        carried = link.carried
        events.append(user.post(kind, new_name("key"), b'"%s"' % (b"x" * 250_000)))
        wait_until(lambda: link.carried > carried + 20, "the POST is on its way")  # noqa: B023 - used at once
        link.weather = Weather(is_cut=True)
        time.sleep(CUT_SECONDS)
    return _settled(user, link, kind, path, events, before)


def _settled(
    user: Stubborn, link: BadLink, kind: str, path: str, events: list[str], lost_before: int
) -> dict[str, object]:
    link.weather = Weather() if link.weather.is_cut else link.weather
    user.until(lambda: not open_work(user), "all work has ended")
    states = user.up.rows(
        "SELECT s.status::text, count(*) AS n FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id "
        "WHERE e.event_type = %s GROUP BY 1",
        [kind],
    )
    words = user.up.rows(
        "SELECT DISTINCT error_code FROM webhook_delivery_jobs j JOIN webhook_delivery_sagas s ON s.id = j.saga_id "
        "JOIN events e ON e.id = s.event_id WHERE e.event_type = %s AND error_code IS NOT NULL",
        [kind],
    )
    arrived = Counter(one.header("webhook-id") for one in user.recorder.events(path))
    return {
        "states": {row["status"]: row["n"] for row in states},
        "packets_lost": link.lost - lost_before,
        "missing": len(set(events) - set(arrived)),
        "again": sum(arrived.values()) - len(arrived),
        "words": sorted(row["error_code"] for row in words),
        "findings": findings(user.up.server.start()),
    }


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="hooksaga-hosts-") as name, two_hosts(Path(name)) as (user, link):
        for word in sys.argv[1:]:
            came_out = (
                cut_in_the_middle(user, link) if word == CUT else in_weather(user, link, WEATHERS[word])
            )
            sys.stdout.write(json.dumps({"weather": word, **came_out}) + "\n")


if __name__ == "__main__":
    main()
