"""Bundles of functions, built without Docker: a handler, its transitive imports, and imported packages as Lambda
wheels.

Only package names that differ from their modules are listed by hand. So a bundle contains every imported module, and
no other.
"""

import ast
import hashlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import jsii
import uv
from aws_cdk import AssetHashType, BundlingOptions, DockerImage, ILocalBundling
from aws_cdk import aws_lambda as lambda_

from hooksaga.adapters.package_files import PACKAGE as HOOKSAGA
from hooksaga.adapters.package_files import package_folder
from hooksaga.aws.function_files import FUNCTIONS
from hooksaga_cdk.elf import strip

RUNTIME = lambda_.Runtime.PYTHON_3_13

PACKAGE = Path(__file__).parent
BUILT_BY = {path.name: path for path in (Path(__file__), PACKAGE / "elf.py")}

OWN_PACKAGES = {"functions": FUNCTIONS, "hooksaga": HOOKSAGA}
"""Folders of the sources of a bundle, by the name of the package in it."""

CONSTRAINTS = package_folder("constraints.txt")
"""Versions of the other packages in a bundle."""

RUNTIME_PACKAGES = frozenset({"boto3", "botocore"})
"""Packages that the Lambda runtime provides; they exceed all others in size."""

REQUIREMENTS = {
    "aws_lambda_powertools": "aws-lambda-powertools",
    "jsonschema_rs": "jsonschema-rs",
    "psycopg": "psycopg[binary]",
    "pydantic_settings": "pydantic-settings",
}
"""Package names that differ from the module name."""

DATA = {
    "hooksaga.adapters.migrations": (package_folder("sql"), "[!q]*/*.sql"),
    "hooksaga.adapters.queries": (package_folder("sql"), "queries/*.sql"),
    "hooksaga.console.assets": (HOOKSAGA / "console", "assets/*"),
    "hooksaga.console.pages": (HOOKSAGA / "console", "templates/**/*.html"),
    "hooksaga.console.snippets": (HOOKSAGA / "console", "receivers/*"),
    "hooksaga.api.reference": (HOOKSAGA / "api", "reference.html"),
}
"""Data files that a module reads at run time: a folder and a pattern in it."""

PLACES = {
    package_folder("sql"): PurePosixPath("hooksaga/sql"),
    HOOKSAGA: PurePosixPath("hooksaga"),
    FUNCTIONS: PurePosixPath("functions"),
}
"""Folders in a bundle. An installed package contains the other two."""

UNUSED_FILES = (
    *("bin", "cffi", "pycparser", "aws_lambda_powertools/event_handler"),
    *("aws_lambda_powertools/utilities/[!_j]*", "pydantic/v1", "pydantic/mypy.py", "cryptography/x509"),
    *("psycopg/pq/*ctypes*", "anyio/_backends/_trio.py", "anyio/streams"),
    *("**/*.pyi", "**/*.pyx", "**/*.pxd", "**/*.c", "**/*.h", "**/_testcapi*", "**/sboms"),
    *("**/RECORD", "**/INSTALLER", "**/REQUESTED", "**/uv_cache.json", "**/.lock"),
)
"""Files of packages that no handler uses, and files that differ between builds: the same sources give the same bytes.
A test starts every handler from its bundle alone."""

CERTIFICATES = PACKAGE / "components" / "certificates" / "amazon-rds.pem"
"""Certificate authorities of RDS and RDS Proxy; Lambda's trust store lacks those of RDS."""


def regions_with_certificates() -> frozenset[str]:
    """Return the regions whose authority of RDS is in the package."""
    return frozenset(
        re.findall(r"^# Amazon RDS (\S+) ", CERTIFICATES.read_text(encoding="utf-8"), re.MULTILINE)
    )


@dataclass(frozen=True, slots=True)
class Machine:
    """Target platform of a function, in the terms of Lambda and of wheels."""

    architecture: lambda_.Architecture
    wheels: str
    python: str = "3.13"


ARM = Machine(lambda_.Architecture.ARM_64, "aarch64-manylinux_2_28")
X86 = Machine(lambda_.Architecture.X86_64, "x86_64-manylinux_2_28")


def this_machine(python: str | None = None) -> Machine:
    """Return the platform of this machine: an emulator runs functions on its own platform, some with its own Python."""
    here = ARM if platform.machine().lower() in {"arm64", "aarch64"} else X86
    return replace(here, python=python or here.python)


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of one bundle: files by path, and requirements for pip."""

    files: Mapping[str, Path]
    requirements: tuple[str, ...]


@cache
def contents_of(function: str) -> Contents:
    """Return the transitive imports of `functions.<function>.handler`."""
    modules = _imported_from(f"functions.{function}.handler")
    own = {name: path for name, path in modules.items() if path is not None}
    packages = {name for name, path in modules.items() if path is None} - RUNTIME_PACKAGES
    data = [path for name, (folder, files) in DATA.items() if name in own for path in folder.glob(files)]
    files = {_place_of(path): path for path in {*own.values(), *data}}
    return Contents(
        dict(sorted(files.items())), tuple(sorted(REQUIREMENTS.get(name, name) for name in packages))
    )


def _place_of(path: Path) -> str:
    """Return a file's path in a bundle, which is the same from a checkout and from an installed package."""
    folder = max((folder for folder in PLACES if folder in path.parents), key=lambda one: len(one.parts))
    return (PLACES[folder] / path.relative_to(folder)).as_posix()


def _imported_from(start: str) -> dict[str, Path | None]:
    """Return all reachable modules with their files; None and the top-level name for other packages."""
    found: dict[str, Path | None] = {}
    waiting = [start]
    while waiting:
        module = waiting.pop()
        if module in found:
            continue
        if module.split(".")[0] not in OWN_PACKAGES:
            found[module] = None
            continue
        found[module] = path = _file_of(module)
        waiting += [*_parents(module), *_imports_in(path)]
    return found


def _parents(module: str) -> Iterator[str]:
    parts = module.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts)))


def _imports_in(path: Path) -> Iterator[str]:
    for node in _nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from _reached(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from _reached([node.module])
            # `from package import module` imports a module
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from _reached(name for name in names if _is_own_module(name))


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Return the syntax nodes, except those under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(tree):
        if (
            isinstance(child, ast.If)
            and isinstance(child.test, ast.Name)
            and child.test.id == "TYPE_CHECKING"
        ):
            continue
        yield child
        yield from _nodes(child)


def _reached(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        top = name.split(".")[0]
        if top in OWN_PACKAGES:
            yield name
        elif top not in sys.stdlib_module_names and not top.startswith("types_"):
            yield top


def _is_own_module(name: str) -> bool:
    return name.split(".")[0] in OWN_PACKAGES and any(path.exists() for path in _candidates(name))


def _file_of(module: str) -> Path:
    return next(path for path in _candidates(module) if path.exists())


def _candidates(module: str) -> tuple[Path, Path]:
    package, *rest = module.split(".")
    place = OWN_PACKAGES[package].joinpath(*rest)
    return place.with_suffix(".py"), place / "__init__.py"


@jsii.implements(ILocalBundling)
class UvBundle:
    """Fills the folder that the CDK provides."""

    def __init__(self, function: str, machine: Machine, certificates: Path) -> None:
        self._function = function
        self._certificates = certificates
        self._machine = machine

    def try_bundle(self, output_dir: str, options: Any = None, **_: Any) -> bool:
        """Return True: Docker is not needed."""
        build(self._function, self._machine, Path(output_dir), self._certificates)
        return True


def build(function: str, machine: Machine, folder: Path, certificates: Path = CERTIFICATES) -> None:
    """Build the bundle of a function in the folder and return its size. Raises CalledProcessError with uv's output."""
    contents = contents_of(function)
    _install(contents.requirements, machine, folder)
    for place, path in contents.files.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    shutil.copyfile(certificates, folder / CERTIFICATES.name)
    _remove_unused_files(folder)
    print(f"bundle {function}: {_size_of(folder) / 1e6:.1f} MB", file=sys.stderr)  # noqa: T201 - the CDK's own output


def _install(requirements: Iterable[str], machine: Machine, folder: Path) -> None:
    subprocess.run(
        [
            *(uv.find_uv_bin(), "pip", "install", "--quiet", "--no-config", "--target", str(folder)),
            *(
                "--python-version",
                machine.python,
                "--python-platform",
                machine.wheels,
                "--only-binary",
                ":all:",
            ),
            *("--constraints", str(CONSTRAINTS), *requirements),
        ],
        check=True,
        cwd=PACKAGE,
    )


def _remove_unused_files(folder: Path) -> None:
    for pattern in UNUSED_FILES:
        for path in list(folder.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    for path in folder.rglob("*.so*"):
        strip(path)


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def digest_of(function: str, machine: Machine, certificates: Path = CERTIFICATES) -> str:
    """Return a digest of everything that the bundle is built from, which names the asset."""
    contents = contents_of(function)
    digest = hashlib.sha256(f"{machine.python} {machine.wheels} {contents.requirements}".encode())
    more = {CONSTRAINTS.name: CONSTRAINTS, CERTIFICATES.name: certificates}
    for place, path in {**BUILT_BY, **more, **contents.files}.items():
        digest.update(f"\0{place}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def code_of(function: str, machine: Machine, certificates: Path = CERTIFICATES) -> lambda_.Code:
    """Return the bundle as CDK code. It is built once per digest and reused from cdk.out."""
    return lambda_.Code.from_asset(
        str(FUNCTIONS / function),
        asset_hash=digest_of(function, machine, certificates),
        asset_hash_type=AssetHashType.CUSTOM,
        bundling=BundlingOptions(
            image=DockerImage.from_registry("unused: bundles are made on this machine"),
            local=UvBundle(function, machine, certificates),
        ),
    )
