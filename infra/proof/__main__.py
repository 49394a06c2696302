"""The command: `make aws-proof`, or `python -m infra.proof`. `--help` lists the options."""

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from hooksaga.aws.deployment import InvalidDeployment
from infra.proof.calls import policy
from infra.proof.page import DEFAULTS, LIKE, RECORD, page, record_of, write_page
from infra.proof.place import Place
from infra.proof.proof import Options, Proof
from infra.proof.run import NAMES, STEPS, Stopped, passed, run, run_step
from infra.proof.state import State

FOLDER = Path(".hooksaga/aws-proof")


def main() -> int:
    options = _arguments().parse_args()
    if options.write_page:
        write_page()
        return 0
    place = Place(options.like, os.environ.get("AWS_ENDPOINT_URL"), tuple(options.context))
    try:
        prefix = place.prefix
    except InvalidDeployment as problem:
        sys.stderr.write(f"--like: {problem}\n")
        return 2
    if options.permissions:
        sys.stdout.write(json.dumps(policy(prefix), indent=2) + "\n")
        return 0
    state = State(options.folder)
    if lacking := _lacking(state, options.start):
        sys.stderr.write(f"--from {options.start}: {options.folder} holds no run that got past {lacking}\n")
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a stopped run destroys, too
    chosen = Options(
        rate=options.rate,
        minutes=options.minutes,
        fault_minutes=options.fault_minutes,
        alarm_minutes=options.alarm_minutes,
        settle_minutes=options.settle_minutes,
        confirmed=options.yes,
    )
    return prove(Proof(place, state, chosen), options.start, keep=options.keep)


def prove(proof: Proof, first: str, *, keep: bool) -> int:
    """Run, destroy, and write the page. Return the exit code. An unexpected error destroys, too, and is raised."""
    problem, code = first, 1
    try:
        problem = _run(proof, first) if first != NAMES[-1] else ""
    finally:
        if proof.has_deployed or first != NAMES[0]:
            code = _end(proof, problem, keep)
    return code


def _run(proof: Proof, first: str) -> str:
    """Return the name of the step that ended the run early; empty if none did."""
    try:
        run(proof, first)
    except Stopped as stopped:
        return str(stopped)
    except KeyboardInterrupt:
        return next(reversed(proof.state.results), NAMES[0])
    return ""


def _end(proof: Proof, problem: str, keep: bool) -> int:
    """Destroy unless it is to be kept, and return the exit code."""
    if keep or (problem and not _agreed("Destroy what was deployed now?")):
        where = problem or NAMES[-1]
        sys.stdout.write(f'Kept. Go on: make aws-proof ARGS="--yes --from {where}". End: --from destroy\n')
        return 1 if problem else 0
    try:
        run_step(proof, STEPS[-1])
    except (Stopped, KeyboardInterrupt):
        sys.stdout.write('Something may still cost money: make aws-proof ARGS="--from destroy"\n')
    return _write(proof)


def _write(proof: Proof) -> int:
    record = record_of(proof)
    (proof.state.folder / "page.md").write_text(page(record), encoding="utf-8")
    done = passed(list(proof.state.results.values()))
    if done and proof.place.endpoint is None:
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        write_page()
    sys.stdout.write(
        f"{'Every step passed' if done else 'NOT every step passed'}: {proof.state.folder / 'page.md'}\n"
    )
    return 0 if done else 1


def _lacking(state: State, start: str) -> str | None:
    """Return the first step before `start` whose outcome it needs and the run does not have."""
    before = NAMES[: NAMES.index(start)] if start != NAMES[-1] else ()
    stored = {"deploy": "outputs", "key": "key", "receiver": "receiver"}
    return next((step for step in before if step in stored and state.get(stored[step]) is None), None)


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _not_negative(text: str) -> float:
    return 0.0 if float(text) == 0 else _positive(text)


def _agreed(question: str) -> bool:
    """Ask on a terminal; elsewhere nobody could answer, and what was deployed costs money."""
    if not sys.stdin.isatty():
        return True
    try:
        return not input(f"{question} [Y/n] ").strip().lower().startswith("n")
    except (KeyboardInterrupt, EOFError):
        return True


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make aws-proof", description="Prove hooksaga in your AWS account (docs/aws-proof.md)."
    )
    add = parser.add_argument
    add("--yes", action="store_true", help="agree to the duration and the price that the first step names")
    add(
        "--permissions",
        action="store_true",
        help="print the IAM policy that the proof needs, and do nothing else",
    )
    add(
        "--from", dest="start", choices=NAMES, default=NAMES[0], help="go on with this step of an earlier run"
    )
    add("--keep", action="store_true", help="do not destroy at the end")
    add("--like", default=LIKE, help="environment whose settings are proved: dev or prod")
    add("--rate", type=_positive, default=DEFAULTS.rate, help="events a second")
    add("--minutes", type=_positive, default=DEFAULTS.minutes, help="of undisturbed load")
    add("--fault-minutes", type=_positive, default=DEFAULTS.fault_minutes, help="of each fault that lasts")
    add(
        "--alarm-minutes",
        type=_not_negative,
        default=DEFAULTS.alarm_minutes,
        help="to wait for the alarm; 0 for no wait",
    )
    add(
        "--settle-minutes",
        type=float,
        default=DEFAULTS.settle_minutes,
        help="to wait for the last deliveries",
    )
    add("--folder", type=Path, default=FOLDER, help="of the run's journal, logs and state")
    add(
        "--context",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="further -c of the CDK; repeatable",
    )
    add("--write-page", action="store_true", help="write docs/aws-proof.md, and do nothing else")
    return parser


if __name__ == "__main__":
    sys.exit(main())
