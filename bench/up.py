"""`hooksaga up` with what no setting offers, for measurements: `python -m bench.up up --sqs`.

--sqs: as many copies of delivery as in `dev` on AWS, each a process. HOOKSAGA_BENCH_FASTER: the longest wait between
two probes is so many times shorter, for a run whose settings are that much shorter. HOOKSAGA_BENCH_LATENCY: the windows
and batches of this level, with as many pollers as Lambda has; HOOKSAGA_BENCH_COUNTS: the file that then gets the
invocations by function and the messages by queue.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from hooksaga.adapters.queues import Queue
from hooksaga.aws.deployment import ENVIRONMENTS
from hooksaga.aws.latency import LEVELS, Latency
from hooksaga.cli import run
from hooksaga.cli.app import main
from hooksaga.core import flow
from hooksaga.cost.work import POLLERS

FASTER = "HOOKSAGA_BENCH_FASTER"
LATENCY = "HOOKSAGA_BENCH_LATENCY"
COUNTS = "HOOKSAGA_BENCH_COUNTS"


run_system = run._system


def _system(settings: Any, port: int, sqs: bool) -> Any:
    if not sqs:
        return run_system(settings, port, sqs)
    from hooksaga.local.sqs.system import SqsOptions, SqsSystem

    class Counted(SqsSystem):
        async def _stop_sources(self) -> None:
            await super()._stop_sources()
            if COUNTS in os.environ:
                _write_counts(self, Path(os.environ[COUNTS]))

    dev = ENVIRONMENTS["dev"]
    quick = dev.delivery.concurrency - dev.slow_concurrency
    copies = {"delivery": quick, "delivery-slow": dev.slow_concurrency}
    mappings: dict[str, dict[str, Any]] = {
        queue: {"maximum_concurrency": many} for queue, many in copies.items()
    }
    if level := os.environ.get(LATENCY):
        mappings = _with_windows(Latency(level), mappings)
    made = Counted(settings, port=port, options=SqsOptions(mappings=mappings))
    made._kinds["delivery"] = replace(made._kinds["delivery"], concurrency=dev.delivery.concurrency)
    return made


def _with_windows(level: Latency, mappings: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        Queue(queue).dashed: {
            "batch_size": one.size,
            "window_seconds": one.window_seconds,
            "pollers": POLLERS,
            "maximum_concurrency": POLLERS,
            **mappings.get(Queue(queue).dashed, {}),
        }
        for queue, one in LEVELS[level].items()
    }


def _write_counts(system: Any, path: Path) -> None:
    counts: dict[str, dict[str, int]] = {
        "invocations": {name: function.invocations for name, function in system.functions.items()},
        "messages": {
            queue: sum(len(one.message_ids) for one in source.handled)
            for queue, source in system.sources.items()
        },
        "batches": {queue: len(source.handled) for queue, source in system.sources.items()},
    }
    path.write_text(json.dumps(counts), encoding="utf-8")


if __name__ == "__main__":
    run._system = _system
    flow.LAST_PROBE_SECONDS /= float(os.environ.get(FASTER, "1"))
    main()
