"""docs/cost.md shows what its commands print; `python -m docs.generators.cost_page` writes them anew."""

from typer.testing import CliRunner

from docs.generators.cost_page import BLOCK, PAGE, filled
from hooksaga.cli.app import app
from hooksaga.cost import work

TEXT = PAGE.read_text(encoding="utf-8")


def test_every_table_is_what_its_command_prints() -> None:
    assert len(BLOCK.findall(TEXT)) == TEXT.count("\nhooksaga cost") == 4
    assert filled(TEXT, lambda words: CliRunner().invoke(app, words).stdout) == TEXT


def test_the_formulas_have_the_numbers_of_the_code() -> None:
    said = [
        f"{work.SQS_CALL_MS} ms for each call to SQS",
        f"{work.DATABASE_MS} ms of network",
        f"memory / {work.MB_OF_A_VCPU:,} MB",
        f"{work.HEADER_BYTES:,} bytes of headers",
        f"messages that arrive in {work.BATCH_SECONDS:g} s",
        f"{work.POLLERS} pollers x {work.POLLS_PER_MINUTE} a minute x {work.READ_QUEUES} queues",
        f"{work.LOG_BYTES_PER_INVOCATION} bytes of Lambda's own",
    ]
    text = TEXT.replace("\n", " ")
    assert [words for words in said if words not in text] == []
