"""An endpoint that is down for an hour under five events a second, in a minute: every wait is 60 times shorter.

    .venv/bin/python -m bench.outage [--hours 1] [--rate 5] [--faster 60] [--json]

`hooksaga up` as users run it, with delays of retries and probes that are 60 times shorter, and 60 times as many events
a second. Down: the endpoint answers 503. Then it answers 200, and events go on until the next probe at the latest.
What is started takes its own time. In order: no attempt begins while one that has been due for longer still waits.
"""

import time
from dataclasses import dataclass
from typing import LiteralString

from bench.figures import shown
from bench.load import MeasurementFailed, running_load
from bench.place import Place, new_place, parser_of, report, run_command
from bench.receiver import STALLED_SECONDS
from bench.up import FASTER
from hooksaga.core.flow import LAST_PROBE_SECONDS
from hooksaga.core.saga import RetryPolicy

EVENT_TYPE = "bench.outage"
HOUR = 3600.0
LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Outage:
    """attempts: while it was down. share: of all attempts that those events may have. until: seconds after it was back.
    Limits are of deliveries in flight; over_limit: looks at which more were in flight. out_of_order: attempts that
    began before that of an older one."""

    events_while_down: int
    attempts: int
    share: float
    dead_letters: int
    events: int
    not_delivered: int
    until_first_seconds: float
    until_all_seconds: float
    first_limit: float
    highest_limit: float
    most_in_flight: int
    over_limit: int
    out_of_order: int


@dataclass(frozen=True, slots=True)
class Look:
    """State at one moment of the time after the outage."""

    at: float
    delivered: int
    in_flight: int
    limit: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--hours", type=float, default=1, help="for which the endpoint is down")
    parser.add_argument("--rate", type=float, default=5, help="events a second")
    parser.add_argument("--faster", type=float, default=60, help="so many times")
    options = parser.parse_args()
    run_command(lambda: _outage(options.hours, options.rate, options.faster), table, json=options.json)


def _outage(hours: float, rate: float, faster: float) -> Outage:
    with new_place(program="bench.up", environment=shortened(faster)) as place:
        return measure(place, hours, rate, faster)


def shortened(faster: float) -> dict[str, str]:
    """Return the settings with which retries and probes wait for so many times shorter."""
    usual = RetryPolicy()
    return {
        "HOOKSAGA_BASE_DELAY_SECONDS": f"{usual.base_delay_seconds / faster}",
        "HOOKSAGA_MAX_DELAY_SECONDS": f"{usual.max_delay_seconds / faster}",
        "HOOKSAGA_PROBE_SECONDS": f"{usual.probe_seconds / faster}",
        FASTER: f"{faster}",
    }


def measure(place: Place, hours: float, rate: float, faster: float) -> Outage:
    down_seconds, rate = hours * HOUR / faster, rate * faster
    place.subscribe([(EVENT_TYPE, "/down/outage")])
    report(f"{rate:,.0f} events a second, {down_seconds:,.0f} s of them while the endpoint is down")
    longest = down_seconds + LAST_PROBE_SECONDS / faster
    with running_load(
        place.load(EVENT_TYPE, count=int(rate * longest), rate=rate, connections=64)
    ) as running:
        began = running.began()
        time.sleep(max(0.0, began + down_seconds - time.monotonic()))
        events, attempts, dead_letters = place.run(SO_FAR)[0]
        back_at = time.monotonic()
        place.receiver.fix()
        looks = _looks_until_delivered(place, int(rate * longest))
        running.result()
    first = next(look for look in looks if look.delivered)
    limits = [look.limit for look in looks if look.delivered]
    dead, not_delivered = place.run(AT_THE_END)[0]
    return Outage(
        events_while_down=events,
        attempts=attempts,
        share=round(attempts / (events * RetryPolicy().max_retry_limit), 5),
        dead_letters=max(dead, dead_letters),
        events=int(rate * longest),
        not_delivered=not_delivered,
        until_first_seconds=round(first.at - back_at, 2),
        until_all_seconds=round(looks[-1].at - back_at, 2),
        first_limit=limits[0],
        highest_limit=max(limits),
        most_in_flight=max(look.in_flight for look in looks),
        over_limit=sum(look.in_flight > max(1, int(look.limit)) for look in looks),
        out_of_order=place.run(OUT_OF_ORDER)[0][0],
    )


def _looks_until_delivered(place: Place, events: int) -> list[Look]:
    """Raises MeasurementFailed when nothing is delivered for a minute."""
    looks = [Look(time.monotonic(), *place.run(LOOK)[0])]
    progress_at = time.monotonic()
    while looks[-1].delivered < events:
        time.sleep(LOOK_SECONDS)
        looks.append(Look(time.monotonic(), *place.run(LOOK)[0]))
        if looks[-1].delivered > looks[-2].delivered:
            progress_at = time.monotonic()
        if time.monotonic() > progress_at + STALLED_SECONDS:
            raise MeasurementFailed(f"only {looks[-1].delivered} of {events} deliveries came")
    return looks


SO_FAR: LiteralString = """
    SELECT (SELECT count(*) FROM webhook_delivery_sagas), (SELECT count(*) FROM webhook_delivery_jobs),
           (SELECT count(*) FROM dead_letters)"""

LOOK: LiteralString = """
    SELECT (SELECT count(*) FROM webhook_delivery_sagas WHERE status = 'Completed'),
           (SELECT count(*) FROM webhook_delivery_sagas WHERE status = 'InProgress'),
           (SELECT in_flight_limit FROM subscription_flow)"""

AT_THE_END: LiteralString = """
    SELECT (SELECT count(*) FROM dead_letters),
           (SELECT count(*) FROM webhook_delivery_sagas WHERE status <> 'Completed')"""

OUT_OF_ORDER: LiteralString = """
    WITH first_success AS (
        SELECT min(updated_at) AS at FROM webhook_delivery_sagas WHERE status = 'Completed'
    ), started AS (
        SELECT j.attempt_at,
               max(j.attempt_at) OVER (ORDER BY j.created_at
                                       GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newest_before
          FROM webhook_delivery_jobs j, first_success f
         WHERE j.created_at > f.at
    )
    SELECT count(*) FROM started WHERE attempt_at < newest_before"""


def table(result: Outage) -> str:
    rows = [
        ("events while it was down", f"{result.events_while_down:,}"),
        ("attempts of them meanwhile", f"{result.attempts:,}, {result.share:.2%} of all they may have"),
        ("dead letters", result.dead_letters),
        ("events in all; not delivered", f"{result.events:,}; {result.not_delivered}"),
        (
            "seconds until the first, until all",
            f"{result.until_first_seconds}, {result.until_all_seconds}",
        ),
        ("limit after the first, at most", f"{result.first_limit:.0f}, {result.highest_limit:.0f}"),
        ("most in flight; looks above the limit", f"{result.most_in_flight}; {result.over_limit}"),
        ("attempts before an older one", result.out_of_order),
    ]
    return shown(("an outage", ""), rows)


if __name__ == "__main__":
    main()
