"""A bundle holds what its function imports, starts without anything else, and holds nothing more."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.api.reference import PAGE_FILE
from hooksaga.aws.deployment import LOCAL
from hooksaga.console.assets import served
from hooksaga.console.pages import TEMPLATES
from hooksaga_cdk.bundling import ARM, build, contents_of, digest_of, this_machine
from tests.infra.conftest import ROOT
from tests.scheduling import long_but

MAX_BUNDLE_BYTES = 24e6
MAX_BYTES_OF_CALLERS = 36.5e6
"""Ten of it are the cryptography package, which opens signing secrets."""

SCHEMAS_BYTES = 12.7e6
"""The package that checks payloads by JSON Schemas."""

SOME_FUNCTIONS = pytest.mark.parametrize("function", long_but(LOCAL.functions, "delivery"))
"""One in `make test`: a bundle takes some seconds."""

START = """
import importlib
import sys
sys.path[:0] = [sys.argv[1]]
import types
for module in ("boto3", "botocore", "botocore.session", "botocore.config", "botocore.exceptions"):  # the runtime's own
    sys.modules[module] = types.ModuleType(module)
sys.modules["botocore.config"].Config = object
sys.modules["botocore.exceptions"].BotoCoreError = sys.modules["botocore.exceptions"].ClientError = Exception
started = importlib.import_module(f"functions.{sys.argv[2]}.handler")
assert started.__file__.startswith(sys.argv[1]), started.__file__
assert callable(started.handler)
"""


@pytest.mark.parametrize("function", LOCAL.functions)
def test_a_bundle_has_no_other_functions_code(function: str) -> None:
    handlers = {
        path.parent.name for path in contents_of(function).files.values() if path.name == "handler.py"
    }
    assert handlers == {function}


@pytest.mark.parametrize("function", LOCAL.functions)
def test_only_migrate_carries_the_schema(function: str) -> None:
    folders = [ROOT / "sql" / name for name in ("schema", "functions", "migrations")]
    carried = {path for path in contents_of(function).files.values() if path.parent in folders}
    schema = {path for folder in folders for path in folder.glob("*.sql")}
    assert carried == (schema if function == "migrate" else set())
    assert len(schema) > 40


@pytest.mark.parametrize("function", LOCAL.functions)
def test_who_answers_with_the_reference_carries_it_and_nobody_what_it_is_made_with(function: str) -> None:
    contents = contents_of(function)
    assert (PAGE_FILE in contents.files.values()) == (function == "ingest")
    pages_need = {"jinja2", "markupsafe"} if function == "console" else set[str]()
    assert {"jinja2", "markupsafe"} & set(contents.requirements) == pages_need


@pytest.mark.parametrize("function", LOCAL.functions)
def test_only_the_console_carries_its_templates_and_assets(function: str) -> None:
    carried = {
        path for path in contents_of(function).files.values() if path.suffix in (".css", ".js", ".svg")
    }
    templates = {path for path in contents_of(function).files.values() if path.is_relative_to(TEMPLATES)}
    assert bool(carried) == bool(templates) == (function == "console")
    if function == "console":
        assert templates == set(TEMPLATES.rglob("*.html"))
        assert set(served().values()) <= set(contents_of(function).files.values())


def test_a_worker_carries_no_web_framework() -> None:
    for function in (
        "intake",
        "router",
        "orchestrator",
        "delivery",
        "lease_cleaner",
        "health_monitor",
        "retention",
        "migrate",
    ):
        assert "starlette" not in contents_of(function).requirements


@pytest.mark.parametrize("function", LOCAL.functions)
def test_what_the_runtime_brings_is_left_out(function: str) -> None:
    assert not {"boto3", "botocore"} & set(contents_of(function).requirements)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Python compiles of one bundle, kept for the next: most of their files are the same."""
    return tmp_path_factory.mktemp("compiled")


@SOME_FUNCTIONS
def test_a_bundle_starts_with_nothing_else(function: str, compiled: Path) -> None:
    """Built for this machine and this Python, and run without this environment's packages."""
    here = this_machine(f"{sys.version_info.major}.{sys.version_info.minor}")
    bundle = compiled.with_name("bundle")  # the same path each time: compiled files go by path and time
    shutil.rmtree(bundle, ignore_errors=True)
    build(function, here, bundle)
    for place in contents_of(function).files:
        os.utime(bundle / place, (0, 0))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", f"pycache_prefix={compiled}", "-c", START, str(bundle), function],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(bundle.glob("hooksaga/sql/*/*.sql"))
    assert (bundle / "amazon-rds.pem").exists()


def test_only_those_that_call_receivers_carry_what_calls_them() -> None:
    carrying = [name for name in LOCAL.functions if "httptools" in contents_of(name).requirements]
    opening = [name for name in LOCAL.functions if "cryptography" in contents_of(name).requirements]
    assert sorted(carrying) == sorted(opening) == ["console", "delivery", "subscriptions"]


def test_only_those_that_take_events_or_schemas_carry_what_checks_them() -> None:
    checking = [name for name in LOCAL.functions if "jsonschema-rs" in contents_of(name).requirements]
    assert sorted(checking) == ["console", "ingest", "intake", "subscriptions"]


@SOME_FUNCTIONS
def test_an_arm_bundle_holds_arm_code_and_is_small(function: str, tmp_path: Path) -> None:
    """Lambda fetches and unpacks it at every cold start."""
    build(function, ARM, tmp_path)
    libraries = list(tmp_path.rglob("*.so*"))
    assert libraries
    machines = {path.read_bytes()[18:20] for path in libraries}
    assert machines == {b"\xb7\x00"}, "ELF's number for aarch64"
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    requirements = contents_of(function).requirements
    limit = MAX_BYTES_OF_CALLERS if "httptools" in requirements else MAX_BUNDLE_BYTES
    assert size < limit + (SCHEMAS_BYTES if "jsonschema-rs" in requirements else 0)


def test_the_digest_follows_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest_of("migrate", ARM)
    assert digest_of("migrate", ARM) == before
    assert digest_of("migrate", this_machine("3.12")) != before
    monkeypatch.setattr("hooksaga_cdk.bundling.CERTIFICATES", ROOT / "pyproject.toml")
    assert digest_of("migrate", ARM) != before
