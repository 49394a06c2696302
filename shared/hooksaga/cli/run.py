"""`up`, `demo` and `receiver`: commands that run in the foreground until they are stopped."""

import asyncio
import contextlib
import errno
import os
import shutil
import sysconfig
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hooksaga.cli.api_access import DEFAULT_URL
from hooksaga.cli.failures import FAILED, CommandFailed, WrongUse
from hooksaga.cli.signals import interrupt_on_sigterm, stop_on_signals
from hooksaga.cli.terminal import echo, echo_error, printable
from hooksaga.cli.up_lines import Digest, LogForm, UpLines, is_text

if TYPE_CHECKING:
    from hooksaga.local.system import LocalSystem
    from hooksaga.runtime.settings import Settings

LOOPBACK = "127.0.0.0/8,::1/128"
ABANDON_SECONDS = 6.0
PORT_ERRORS = (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL)

Port = Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 selects a free port.")]
BySqs = Annotated[
    bool, typer.Option("--sqs", help="Use the Lambda functions and their queues instead of polling.")
]


def up(
    port: Port = 8080,
    local_receivers: Annotated[
        bool,
        typer.Option(
            "--local-receivers",
            help="Allow deliveries to this machine and trust the certificate of `hooksaga receiver`.",
        ),
    ] = False,
    sqs: BySqs = False,
    log: Annotated[
        LogForm,
        typer.Option(help="Log on standard error: short lines, or JSON. auto: short lines on a terminal."),
    ] = LogForm.AUTO,
) -> None:
    """Run all components on this machine until Ctrl-C or SIGTERM.

    Starts the database, the API and the deliveries. At a signal, requests in flight end first; a second signal stops
    at once. Killing the process at any moment loses no event.
    """
    from hooksaga.worker import event_loop

    event_loop.run(_serve(_settings_of_up(local_receivers), port, sqs, log))


def _settings_of_up(local_receivers: bool) -> "Settings":
    from hooksaga.runtime.settings import read_settings

    settings = read_settings()
    if not local_receivers:
        return settings
    from hooksaga.local.tls import ensure_certificates

    allowed = ",".join([LOOPBACK, *(str(network) for network in settings.egress_allow)])
    ca_file = settings.ca_file or ensure_certificates(settings.data_dir).ca
    return read_settings(egress_allow=allowed, ca_file=ca_file)


def _system(settings: "Settings", port: int, sqs: bool) -> "LocalSystem":
    if sqs:
        from hooksaga.local.sqs.system import SqsSystem

        return SqsSystem(settings, port=port)
    from hooksaga.local.api_process import processes_of
    from hooksaga.local.system import LocalSystem

    return LocalSystem(settings, port=port, processes=processes_of(settings))


async def _serve(settings: "Settings", port: int, sqs: bool, log: LogForm) -> None:
    from hooksaga.worker.event_loop import forget_what_stays

    stop = stop_on_signals()
    lines = _short_lines(log)
    system = _system(settings, port, sqs)
    try:
        url = await system.start()
    except OSError as error:
        raise _port_error(error, port) from error
    _greet(settings, system, url, await system.console_link(url))
    counts = None if lines is None else asyncio.create_task(lines.print_counts(f"{url}/console"))
    forget_what_stays()
    ended = asyncio.create_task(system.wait())
    signalled = asyncio.create_task(stop.wait())
    await asyncio.wait({ended, signalled}, return_when=asyncio.FIRST_COMPLETED)
    if counts is not None:
        counts.cancel()
    if ended.done() and ended.exception() is not None:
        await _abandon(system)
        await ended
    if signalled.done():
        echo_error("hooksaga is stopping and waits for requests in flight; repeat the signal to stop at once")
    await system.stop()
    if not signalled.done():
        raise CommandFailed("hooksaga stopped because of an internal error; see its log and start it again")


def _short_lines(log: LogForm) -> UpLines | None:
    """Print the log as lines for people from now on, if it is for people."""
    if not is_text(log):
        return None
    from hooksaga.runtime.telemetry import write_log_to

    lines = UpLines(Digest())
    write_log_to(lines)
    return lines


async def _abandon(system: "LocalSystem") -> None:
    """End the process soon, whatever hangs: a supervisor waits for that, and nothing is lost."""
    last_resort = threading.Timer(ABANDON_SECONDS, os._exit, [FAILED])
    last_resort.daemon = True
    last_resort.start()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ABANDON_SECONDS / 2):
            await system.abandon()


def _port_error(error: OSError, port: int) -> Exception:
    if error.errno not in PORT_ERRORS or error.filename is not None:
        return error
    reason = "is in use" if error.errno == errno.EADDRINUSE else "is not available"
    return WrongUse(f"port {port} on 127.0.0.1 {reason}; choose another with --port (0 selects a free port)")


def _greet(settings: "Settings", system: "LocalSystem", url: str, console: str) -> None:
    echo(f"hooksaga is ready at {url}")
    echo(f"  console   {console}")
    echo("            (one-time link, valid for an hour; later, sign in with the API key)")
    echo(f"  API key   {_where_the_key_is(settings, system)}")
    if system.intake_queue_url is not None:
        echo(f"  intake    {system.intake_queue_url}")
    echo("  to stop   Ctrl-C, or SIGTERM")
    echo("next steps, in another terminal:")
    if shutil.which("hooksaga") is None:
        echo(f'  export PATH="{sysconfig.get_path("scripts")}:$PATH"')
    if url != DEFAULT_URL:
        echo(f"  export HOOKSAGA_API_URL={url}")
    echo("  hooksaga subscriptions create --event-type order.created --callback-url https://...")
    echo("  hooksaga send FILE")
    echo("  hooksaga stats --watch")


def _where_the_key_is(settings: "Settings", system: "LocalSystem") -> str:
    if settings.api_key is not None:
        return "the one in HOOKSAGA_API_KEY"
    path = settings.data_dir.absolute() / "api_key"
    shown = f"{system.api_key}, stored in " if system.api_key_is_new else ""
    return f"{shown}{path}, which the commands read"


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep everything running at the end, until Ctrl-C.")
    ] = False,
    sqs: BySqs = False,
) -> None:
    """Deliver sample events to healthy and failing subscribers.

    Shows the result of each delivery. Exit code 1 if a result is not the expected one.
    """
    from hooksaga.runtime.settings import read_settings
    from hooksaga.runtime.telemetry import logger
    from hooksaga.worker import event_loop

    logger.setLevel("CRITICAL")
    interrupt_on_sigterm()
    from rich.console import Console

    console: Any = Console(highlight=False, emoji=False)
    story = _story(sqs)(read_settings().data_dir, console, keep=_keep_running if keep else None)
    good = event_loop.run(story)
    raise typer.Exit(0 if good else FAILED)


def _story(sqs: bool) -> Any:
    if sqs:
        from hooksaga.local.sqs.demo import run_sqs_demo

        return run_sqs_demo
    from hooksaga.local.demo import run_demo

    return run_demo


async def _keep_running(url: str, key: str, console: str) -> None:
    echo("Everything goes on running until Ctrl-C.\nTo see these deliveries in a browser (one-time link):")
    echo(f"  {console}")
    echo("To use the API in another terminal:")
    echo(f"  export HOOKSAGA_API_URL={url}")
    echo(f"  export HOOKSAGA_API_KEY={key}")
    echo("  hooksaga dead-letters list")
    await stop_on_signals().wait()


def receiver(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 selects a free port.")] = 9443,
    secret: Annotated[
        str | None,
        typer.Option(
            envvar="HOOKSAGA_RECEIVER_SECRET",
            help="whsec_... secret to verify signatures.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no requests, and store counts only, no bodies.")
    ] = False,
) -> None:
    """Run a TLS test subscriber that can fail on purpose, and print each request.

    The path selects the behavior: /ok, /status/CODE, /flaky/N (503 N times per event), /down (503 until fixed),
    /slow/MS, /reset, /hang, /huge/BYTES, /drip. GET /_received lists requests; POST /_fix fixes /down.
    """
    from hooksaga.local.receiver import run_receiver
    from hooksaga.runtime.settings import read_settings

    _check_secret(secret)
    folder = read_settings().data_dir
    try:
        run_receiver(
            host,
            port,
            data_dir=folder,
            announce=_announcer(folder),
            tell=None if quiet else _tell_request,
            secret=secret,
            quiet=quiet,
        )
    except OSError as error:
        if error.filename is not None:
            raise
        raise WrongUse(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another --port"
        ) from error


def _tell_request(line: str) -> None:
    echo(f"{time.strftime('%H:%M:%S')}  {printable(line)}")


def _check_secret(secret: str | None) -> None:
    from hooksaga.core.signing import InvalidSecret, decode_secret

    try:
        decode_secret(secret) if secret is not None else None
    except InvalidSecret:
        raise WrongUse(
            "--secret is not a signing secret: pass the whsec_... that `subscriptions create` shows"
        ) from None


def _announcer(folder: Path) -> Any:
    def announce(url: str) -> None:
        echo(f"receiver at {url}, e.g. {url}/ok and {url}/flaky/2")
        echo(f"  its certificate is signed by {folder.absolute() / 'tls' / 'ca.pem'}")
        echo("  `hooksaga up --local-receivers` trusts it and allows deliveries to this machine")

    return announce
