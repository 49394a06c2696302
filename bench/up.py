"""`hooksaga up` with what no setting offers, for measurements: `python -m bench.up up --sqs`.

--sqs: as many copies of delivery as in `dev` on AWS, each a process. HOOKSAGA_BENCH_FASTER: the longest wait between
two probes is so many times shorter, for a run whose settings are that much shorter.
"""

import os
from dataclasses import replace
from typing import Any

from hooksaga.aws.deployment import ENVIRONMENTS
from hooksaga.cli import run
from hooksaga.cli.app import main
from hooksaga.core import flow

FASTER = "HOOKSAGA_BENCH_FASTER"


def _system(settings: Any, port: int, sqs: bool) -> Any:
    if not sqs:
        from hooksaga.local.system import LocalSystem

        return LocalSystem(settings, port=port)
    from hooksaga.local.sqs.system import SqsOptions, SqsSystem

    dev = ENVIRONMENTS["dev"]
    quick = dev.delivery.concurrency - dev.slow_concurrency
    copies = {"delivery": quick, "delivery-slow": dev.slow_concurrency}
    mappings = {queue: {"maximum_concurrency": many} for queue, many in copies.items()}
    made = SqsSystem(settings, port=port, options=SqsOptions(mappings=mappings))
    made._kinds["delivery"] = replace(made._kinds["delivery"], concurrency=dev.delivery.concurrency)
    return made


if __name__ == "__main__":
    run._system = _system
    flow.LAST_PROBE_SECONDS /= float(os.environ.get(FASTER, "1"))
    main()
