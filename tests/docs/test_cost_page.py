"""docs/cost.md and docs/scale.md have the numbers of the code: `python -m docs.generators.cost_page` writes them."""

import re
from pathlib import Path

import pytest

from docs.generators.cost_page import BLOCK, NAMED, PAGES, filled, run_cost
from docs.generators.cost_tables import TABLES, Peer, peers
from hooksaga.aws.deployment import ENVIRONMENTS
from hooksaga.aws.latency import IDLE_WINDOW_SECONDS
from hooksaga.cost import bill, capacity, demand, work
from hooksaga.cost.estimate import estimate_of
from hooksaga.cost.sources import read_inputs, read_prices
from hooksaga.cost.work import Load

TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
COST, SCALE = TEXTS["cost.md"].replace("\n", " "), TEXTS["scale.md"].replace("\n", " ")


def test_every_table_is_what_its_command_prints() -> None:
    assert len(BLOCK.findall(TEXTS["cost.md"])) == TEXTS["cost.md"].count("\nhooksaga cost") == 5
    for text in TEXTS.values():
        assert filled(text, run_cost) == text


def test_every_table_is_on_a_page() -> None:
    named = [block["name"] for text in TEXTS.values() for block in NAMED.finditer(text)]
    assert sorted(named) == sorted(TABLES)


def test_the_formulas_have_the_numbers_of_the_code() -> None:
    instances = read_prices().rds_postgresql.instances
    said = [
        f"{work.SQS_CALL_MS} ms for each call to SQS",
        f"{work.DATABASE_MS} ms of network",
        f"memory / {work.MB_OF_A_VCPU:,} MB",
        f"{work.HEADER_BYTES:,} bytes of headers",
        f"messages that arrive in {work.BATCH_SECONDS:g} s",
        f"{work.POLLERS} pollers x {work.POLLS_PER_MINUTE} a minute x {work.READ_QUEUES} queues",
        f"those of one of {work.POLLERS} pollers",
        f"a standard deviation of {work.RECEIVER_SPREAD} in the logarithm",
        f"{work.LOG_BYTES_PER_INVOCATION} bytes of Lambda's own",
        f"{bill.ACCESS_LOG_BYTES} bytes for each request",
        f"{bill.REFUSED_FLOWS_GB} GB of refused packets",
        f"{bill.ANSWER_BYTES} bytes of answer",
        f"{bill.BYTES_PER_SQS_REQUEST:,} bytes for each send",
        f"{bill.BYTES_PER_STATEMENT} bytes for each statement",
        f"{bill.COLD_STARTS_A_DAY} reads a day",
        f"{bill.COMPRESSED_LOGS:.0%} is kept".replace("%", " %"),
        f"{bill.ALARMS} alarms, {bill.CUSTOM_METRICS} metrics",
        f"at most {capacity.BUSY_SHARE:.0%} busy".replace("%", " %"),
        f"Behind RDS Proxy {demand.PLANNED_ANEW} times the work",
        f"{capacity.VOLUME[False][0]:,} a second of a gp3 volume below {capacity.STRIPED_GB} GB",
        f"{capacity.VOLUME[True][0]:,} from there",
        f"{capacity.CONNECTION_MB} MB each",
        f"one of `t4g` {instances['t4g.micro'].speed:g} times",
        f"up to {IDLE_WINDOW_SECONDS} seconds",
    ]
    assert [words for words in said if words not in COST] == []


def test_the_work_of_one_event_is_as_measured() -> None:
    inputs = read_inputs()
    alone, full = (
        inputs.made[size].event.database_ms + inputs.made[size].delivery.database_ms for size in ("1", "10")
    )
    assert f"takes {inputs.statements:g} statements" in COST
    assert f"{full:.1f} ms instead of {alone:.1f}" in COST
    assert f"{1 + len(work.STEPS)} invocations and {len(work.STEPS)} messages" in COST


def test_the_page_of_sizes_has_the_numbers_of_the_code_and_of_the_measurements() -> None:
    aurora, rds = read_prices().aurora_io_optimized, read_prices().rds_postgresql
    assert f"about {aurora.hour_over_rds:.0f} times".replace("2 times", "twice") in SCALE
    assert round(aurora.gb_month / rds.gb_month_gp3) == 2
    assert f"{capacity.ACCOUNT_COPIES:,} by default" in SCALE
    measured = Path("docs/performance.md").read_text(encoding="utf-8")
    section = measured.split("**Its cost.**")[1].split("\n\n")[0]
    for figure in re.findall(r"([45],\d{3}) deliveries|to one subscription and ([45],\d{3})", SCALE):
        assert max(figure) in section


def test_the_page_of_deploying_has_the_idle_totals() -> None:
    totals = [
        round(estimate_of(Load(0), ENVIRONMENTS[name], read_prices(), read_inputs()).bill.total)
        for name in ("dev", "prod")
    ]
    page = Path("docs/deploy.md").read_text(encoding="utf-8")
    assert f"About ${totals[0]} a month in `dev` and ${totals[1]} in `prod`" in page


@pytest.mark.parametrize("peer", peers(), ids=lambda peer: peer.name)
def test_a_price_of_others_has_its_date_and_source(peer: Peer) -> None:
    assert re.search(r"20\d\d$", peer.read)
    assert peer.source.startswith("https://")
    assert peer.words in TEXTS["cost.md"]
