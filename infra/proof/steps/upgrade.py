"""A deployment of another version under load: new code in every function, and a migration."""

import re
import shutil
import time
from pathlib import Path

from infra.proof.cdk import DEPLOYMENT, ROOT
from infra.proof.proof import Proof
from infra.proof.results import Result
from infra.proof.steps.faults import measure

FOLDERS = ("cdk", "infra", "functions", "shared", "sql")
FILES = ("cdk.json", "pyproject.toml", "constraints.txt")
PRODUCT = Path("shared/hooksaga/core/product.py")
SUFFIX = "+proof"
MIGRATION = "9000_proof"


def upgrade(proof: Proof, result: Result) -> None:
    """Deploy a copy of this checkout with another version and one more migration."""
    started = time.time()
    copy = proof.state.folder.resolve() / "upgraded"
    version = make_copy(copy)
    proof.cdk.deploy(DEPLOYMENT, root=copy)
    proof.state.set(upgraded_to=version)
    measure(proof, result, started)
    result.done.append(f"Deployed version {version} with a migration that adds a column to `events`.")


def make_copy(folder: Path) -> str:
    """Copy this checkout with the changes, and return its version."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copyfile(ROOT / name, folder / name)
    product = folder / PRODUCT
    source, changed = re.subn(
        r'^VERSION = "([^"]+)"$', rf'VERSION = "\1{SUFFIX}"', product.read_text("utf-8"), flags=re.MULTILINE
    )
    if changed != 1:
        raise RuntimeError(f"{PRODUCT} has no line VERSION = …")
    product.write_text(source, encoding="utf-8")
    migration = folder / "sql" / "migrations" / f"{MIGRATION}.sql"
    migration.write_text("ALTER TABLE events ADD COLUMN proof text;\n", encoding="utf-8")
    return re.findall(r'^VERSION = "([^"]+)"$', source, re.MULTILINE)[0]
