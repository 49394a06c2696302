"""Description of the machine of a measurement."""

import os
import platform
import subprocess

import psutil

from hooksaga.core.product import VERSION
from hooksaga.local import postgres_build


def made_of() -> str:
    """Versions and machine, in words."""
    program = str(postgres_build.binaries() / "postgres")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    database = said.replace("(PostgreSQL) ", "").replace("postgres", "PostgreSQL").strip()
    kernel = ".".join(platform.release().split(".")[:2])
    gibibytes = psutil.virtual_memory().total / 2**30
    return (
        f"hooksaga {VERSION}, Python {platform.python_version()}, {database}, {platform.system()} {kernel}, "
        f"{os.cpu_count()} {platform.machine()} cores and {gibibytes:.0f} GiB of memory"
    )
