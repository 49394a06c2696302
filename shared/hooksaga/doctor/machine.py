"""Checks of this machine without a database: versions, times, data folder, disk, certificates, port."""

import platform
import shutil
import socket
import ssl
import stat
import sys
from importlib.metadata import version
from pathlib import Path

import httpx

from hooksaga.adapters.http_connections import client_tls
from hooksaga.core.product import VERSION
from hooksaga.doctor.check import Check, skipped
from hooksaga.local import database_account
from hooksaga.runtime.settings import LEASE_MARGIN_SECONDS, MAX_SUBSCRIPTION_TIMEOUT_SECONDS, Settings
from hooksaga.worker.listening import HOST

MIN_PYTHON = (3, 11)
MIN_FREE_BYTES = 2**30
ON_WINDOWS = sys.platform == "win32"

_OTHERS = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
_OTHERS_AT_ALL = stat.S_IRWXG | stat.S_IRWXO
_SECRET_FILES = ("api_key", "secrets.key", "tls/server.pem")


def check_versions() -> Check:
    """Check Python, and compare the installed package with the running code."""
    faults = list[str]()
    if sys.version_info < MIN_PYTHON:
        faults.append("Python 3.11 or newer is required")
    if (installed := version("hooksaga")) != VERSION:
        faults.append(f"the code has version {VERSION}, but {installed} is installed: install this version")
    return Check("versions", faults, f"hooksaga {VERSION}, Python {platform.python_version()}")


def check_times(settings: Settings) -> Check:
    """Show the times. Their order is validated whenever settings are read."""
    longest = MAX_SUBSCRIPTION_TIMEOUT_SECONDS
    return Check(
        "timeouts are consistent",
        seen=f"connect {settings.http_connect_timeout_seconds:g} s, POST {settings.http_timeout_seconds:g} s and at "
        f"most {longest:g} s, {LEASE_MARGIN_SECONDS} s to record it, lease {settings.lease_seconds:g} s",
    )


def check_data_folder(folder: Path) -> Check:
    """Check that only its owner can read it: it contains keys. As root, the database's user may traverse it."""
    name = "only the owner can read the data folder"
    if not folder.exists():
        return skipped(name, f"{folder.absolute()} does not exist yet: `hooksaga up` creates it")
    if ON_WINDOWS:
        return skipped(name, "Windows has no file modes")
    others = _OTHERS if database_account.is_root() else _OTHERS_AT_ALL
    faults = [_too_open(folder, "700")] if _mode(folder) & others else []
    files = [folder / file for file in _SECRET_FILES if (folder / file).exists()]
    faults += [_too_open(file, "600") for file in files if _mode(file) & _OTHERS_AT_ALL]
    return Check(name, faults, f"{folder.absolute()}, mode {_mode(folder):04o}")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _too_open(path: Path, mode: str) -> str:
    return f"{path} has mode {_mode(path):04o}: chmod {mode} {path}"


def check_disk(folder: Path) -> Check:
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    fault = "a database with a full disk stops: free space, or set HOOKSAGA_DATA_DIR to another disk"
    return Check("disk space", [fault] if free < MIN_FREE_BYTES else [], f"{free / 2**30:.1f} GiB free")


def check_trust(settings: Settings) -> Check:
    """Check the certificate authorities for receivers: the system's and those of HOOKSAGA_CA_FILE."""
    name = "trusted certificates"
    system = _trusted(None) + _lazily_trusted()
    if settings.ca_file is None:
        fault = "the system trusts no certificate authority: install ca-certificates, or set HOOKSAGA_CA_FILE"
        return Check(name, [] if system else [fault], f"{system} of the system")
    try:
        own = _trusted(settings.ca_file) - _trusted(None)
    except OSError as error:  # includes ssl.SSLError
        fault = f"HOOKSAGA_CA_FILE ({settings.ca_file}) contains no readable certificate: {error}"
        return Check(name, [fault], f"{system} of the system")
    return Check(name, seen=f"{system} of the system, {max(own, 0)} more in {settings.ca_file}")


def _trusted(ca_file: Path | None) -> int:
    return client_tls(str(ca_file) if ca_file else None).cert_store_stats()["x509_ca"]


def _lazily_trusted() -> int:
    """Count certificate folders: OpenSSL reads them on demand, so its store does not count them."""
    folder = ssl.get_default_verify_paths().capath
    return len(list(Path(folder).glob("*.0"))) if folder else 0


def check_port(port: int) -> Check:
    """Check that the port is free for `hooksaga up`, or that a healthy hooksaga uses it."""
    name = f"port {port}"
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
        return Check(name, seen="free")
    except OSError as error:
        if is_ours(port):
            return Check(name, seen="hooksaga is running there")
        fault = (
            f"{error.strerror}: stop the process that uses it, or choose another with `hooksaga up --port`"
        )
        return Check(name, [fault], "not free")


def is_ours(port: int) -> bool:
    try:
        answer = httpx.get(f"http://{HOST}:{port}/healthz", timeout=5, trust_env=False)
        return answer.status_code == httpx.codes.OK and answer.json().get("status") == "ok"
    except (httpx.HTTPError, ValueError, AttributeError):
        return False
