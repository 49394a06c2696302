"""Python runs this at its start in every process that has this folder on its PYTHONPATH: the processes under test
are the ones that users run, and the product itself knows nothing of faults."""

import os

if os.environ.get("HOOKSAGA_FAULT_FOLDER"):
    from tests.faults.crash_points import install

    install()
