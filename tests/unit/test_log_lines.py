"""The quick way to write a line gives what the logger's own way would, and is quick."""

import io
import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from aws_lambda_powertools import Logger

from hooksaga.runtime.log_lines import Entry, LineFormatter, MoveLine, RoutedLine, write_lines

LINE = MoveLine(7, "evt_1", 3, "a" * 32, "Completed", 1, previous_status="InProgress", worker_id="w\n\x00é")
ENTRY = Entry(logging.INFO, "saga moved", LINE)


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def logger(stream: io.StringIO, request: pytest.FixtureRequest) -> Iterator[Logger]:
    logger = Logger(
        service=f"test-{request.node.name}",
        level="INFO",
        stream=stream,
        logger_formatter=LineFormatter(utc=True),
    )
    yield logger
    logging.getLogger(logger.service).handlers.clear()


def written(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_what_the_logger_itself_would_write(logger: Logger, stream: io.StringIO) -> None:
    keys = {name: value for name in LINE.__struct_fields__ if (value := getattr(LINE, name)) is not None}
    write_lines(logger, [ENTRY])
    logger.info("saga moved", extra=keys)
    quick, usual = written(stream)
    assert quick.pop("timestamp")[:17] == usual.pop("timestamp")[:17]
    assert usual.pop("location").startswith("test_a_line")
    assert quick == usual


def test_appended_keys_and_the_trace_of_aws_are_in_every_line(
    logger: Logger, stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1")
    logger.append_keys(function_request_id="r1")
    write_lines(logger, [ENTRY, ENTRY])
    lines = written(stream)
    assert len(lines) == 2
    for line in lines:
        assert line["function_request_id"] == "r1"
        assert line["xray_trace_id"] == "1-5759e988-bd862e3fe1be46a994272793"


def test_each_entry_has_its_own_level_and_message_and_one_line(logger: Logger, stream: io.StringIO) -> None:
    routed = RoutedLine("evt_1", "a" * 32, 2, 1.5)
    write_lines(logger, [ENTRY, Entry(logging.WARNING, "event routed", routed), ENTRY])
    assert [(line["level"], line["message"]) for line in written(stream)] == [
        ("INFO", "saga moved"),
        ("WARNING", "event routed"),
        ("INFO", "saga moved"),
    ]
    assert written(stream)[0]["worker_id"] == "w\n\x00é"


def test_the_level_of_the_logger_counts(logger: Logger, stream: io.StringIO) -> None:
    logger.setLevel("WARNING")
    write_lines(logger, [ENTRY, Entry(logging.WARNING, "saga moved", LINE)])
    assert [line["level"] for line in written(stream)] == ["WARNING"]
    logger.setLevel("CRITICAL")
    write_lines(logger, [ENTRY])
    assert len(written(stream)) == 1


def test_nothing_to_say_writes_nothing(logger: Logger, stream: io.StringIO) -> None:
    write_lines(logger, [])
    assert stream.getvalue() == ""


def test_what_has_no_value_is_left_out(logger: Logger, stream: io.StringIO) -> None:
    write_lines(logger, [ENTRY])
    assert not {"error_code", "dead_letter_id", "next_attempt_at", "end_to_end_ms"} & set(written(stream)[0])


def test_times_are_in_utc(logger: Logger, stream: io.StringIO) -> None:
    line = MoveLine(1, "e", 1, "c", "PendingRetry", 1, next_attempt_at=datetime(2026, 1, 2, tzinfo=UTC))
    write_lines(logger, [Entry(logging.INFO, "saga moved", line)])
    assert written(stream)[0]["next_attempt_at"] == "2026-01-02T00:00:00Z"


def test_a_stream_that_is_gone_stops_nobody(
    logger: Logger, stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    stream.close()
    write_lines(logger, [ENTRY])


def test_four_lines_cost_less_than_one_did(logger: Logger) -> None:
    """One delivery has four: routed, started, attempted, completed. Before, it had the one of its attempt."""
    batch = [ENTRY] * 200
    keys = {name: getattr(LINE, name) for name in LINE.__struct_fields__}

    def seconds(work: Any) -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    def usual() -> None:
        for _ in batch:
            logger.info("attempt", extra=keys)

    def quick() -> None:
        for _ in range(4):
            write_lines(logger, batch)

    assert min(seconds(quick) for _ in range(5)) < min(seconds(usual) for _ in range(5))
