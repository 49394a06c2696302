"""Folder and database of one benchmark; both are deleted afterwards."""

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psutil

from hooksaga.local.api_process import processes_of
from hooksaga.local.database_account import make_data_folder
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.system import LocalSystem
from hooksaga.local.tls import ensure_certificates
from hooksaga.runtime.settings import Settings, read_settings
from hooksaga.runtime.telemetry import logger
from hooksaga.worker.event_loop import forget_what_stays

PREFIX = "bench-"
LOOPBACK = "127.0.0.0/8"


@asynccontextmanager
async def own_folder(data_dir: Path) -> AsyncIterator[Path]:
    """Create an empty folder named after this process, and delete those of killed processes."""
    await asyncio.to_thread(_remove_left_behind, data_dir)
    folder = data_dir / f"{PREFIX}{os.getpid()}"
    for one in (data_dir, folder):
        make_data_folder(one)
    try:
        yield folder
    finally:
        await asyncio.to_thread(_remove, folder)


def _remove_left_behind(data_dir: Path) -> None:
    for folder in data_dir.glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX)
        if number.isdecimal() and (int(number) == os.getpid() or not psutil.pid_exists(int(number))):
            _remove(folder)


def _remove(folder: Path) -> None:
    EmbeddedPostgres(folder).stop()
    shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def running_system(folder: Path, *, trust_own: bool) -> AsyncIterator[tuple[LocalSystem, str]]:
    """Start a system like `hooksaga up`, with the settings of this environment, and return it with its URL.

    trust_own: allow deliveries to a receiver on this machine, with a certificate from the folder.
    """
    settings = _settings(folder, trust_own)
    system = LocalSystem(settings, port=0, processes=processes_of(settings))
    with _log_into(folder / "log"):
        url = await system.start()
        forget_what_stays()
        try:
            yield system, url
        finally:
            await system.stop()


def _settings(folder: Path, trust_own: bool) -> Settings:
    own: dict[str, Any] = {"data_dir": folder, "database_url": None}
    if trust_own:
        own |= {"egress_allow": LOOPBACK, "ca_file": ensure_certificates(folder).ca}
    return read_settings(**own)


@contextmanager
def _log_into(path: Path) -> Generator[None]:
    """Log to a file, so that logging costs the same as in `hooksaga up`."""
    handlers = [
        one for one in logging.getLogger(logger.service).handlers if isinstance(one, logging.StreamHandler)
    ]
    with path.open("a", encoding="utf-8") as file:
        before = [handler.setStream(file) for handler in handlers]
        try:
            yield
        finally:
            for handler, stream in zip(handlers, before, strict=True):
                handler.setStream(stream)
