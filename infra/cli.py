"""The `hooksaga` command."""

import asyncio
import signal
import sys
from typing import Annotated

import typer
from rich.console import Console

from shared.runtime.settings import InvalidSettings, read_settings

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Reliable webhook delivery.")
out = Console()


def main() -> None:
    """Entry point. What is wrong with the environment is said in one line per variable, with exit code 2."""
    try:
        app()
    except InvalidSettings as error:
        print(error, file=sys.stderr)
        sys.exit(2)


@app.command()
def demo() -> None:
    """Deliver the sample events to good and bad subscribers, and show how each delivery ended."""
    from infra.local.demo import run_demo

    _quiet_logs()
    good = asyncio.run(run_demo(read_settings().data_dir, out))
    raise typer.Exit(0 if good else 1)


@app.command()
def up(
    port: Annotated[int, typer.Option(help="port of the API on 127.0.0.1; 0 takes a free one")] = 8080,
) -> None:
    """Run everything on this machine until SIGINT or SIGTERM."""
    from infra.local.system import LocalSystem

    async def run() -> None:
        system = LocalSystem(read_settings(), port=port)
        url = await system.start()
        if system.api_key_is_new:
            out.print(f"API key (kept in {read_settings().data_dir}/api_key): {system.api_key}")
        out.print(f"hooksaga is ready at {url}")
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        waiting = asyncio.create_task(system.wait())
        await asyncio.wait({waiting, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
        await system.stop()

    asyncio.run(run())


def _quiet_logs() -> None:
    from shared.runtime.telemetry import logger

    logger.setLevel("CRITICAL")


if __name__ == "__main__":
    main()
