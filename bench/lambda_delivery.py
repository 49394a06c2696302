"""The delivery function as Lambda runs it: jobs a second, milliseconds and memory for each size of batch.

    .venv/bin/python -m bench.lambda_delivery [--jobs 3000]

One process, the real handler, PostgreSQL and a receiver on this machine over TLS connections that are kept. Calls to
SQS are left out. AWS has batches of 10, as larger ones wait for a batching window; the others show what is fixed.
"""

import argparse
import resource
import tempfile
from pathlib import Path

from bench.figures import shown
from bench.lambda_place import EVENT_TYPE, PAYLOAD_BYTES, Pipeline, Spent, log_into, running_pipeline
from hooksaga.adapters.queues import Queue
from hooksaga.local.bench_figures import make_payload

BATCHES = (10, 50, 100)
WARM_UP_JOBS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=3000, help="for each size of batch")
    jobs = parser.parse_args().jobs
    with (
        running_pipeline() as pipeline,
        tempfile.TemporaryDirectory() as folder,
        log_into(Path(folder) / "log"),
    ):
        _measure(pipeline, WARM_UP_JOBS, 10)
        rows = [_row(batch, _measure(pipeline, jobs, batch)) for batch in BATCHES]
    print(shown(("batch", "jobs/s", "ms a batch", "slowest ms", "CPU ms a job", "peak MB"), rows))


def _measure(pipeline: Pipeline, jobs: int, batch: int) -> Spent:
    _make_jobs(pipeline, jobs)
    return pipeline.work_off("delivery", Queue.DELIVERY, batch)


def _make_jobs(pipeline: Pipeline, jobs: int) -> None:
    """Create jobs with the preceding functions, whose ticks find the work without messages."""
    payload = make_payload(1, PAYLOAD_BYTES)
    pipeline.run(
        "INSERT INTO events (event_type, payload) SELECT %s, %s FROM generate_series(1, %s)",
        (EVENT_TYPE, payload, jobs),
    )
    for name in ("router", "orchestrator"):
        pipeline.invoke(name, {}, 0, Spent())


def _row(batch: int, spent: Spent) -> tuple[object, ...]:
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        batch,
        f"{spent.messages / spent.seconds:,.0f}",
        f"{spent.seconds / spent.invocations * 1000:.1f}",
        f"{spent.slowest_seconds * 1000:.1f}",
        f"{spent.cpu_seconds / spent.messages * 1000:.2f}",
        f"{peak_mb:.0f}",
    )


if __name__ == "__main__":
    main()
