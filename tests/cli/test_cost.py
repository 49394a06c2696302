"""`hooksaga cost`, which asks nobody."""

import json

from tests.cli.conftest import runner_with


def test_each_load_is_a_column() -> None:
    done = runner_with({})("cost", "--events-per-month", "0", "--events-per-month", "1e6", "--fan-out", "3")
    assert done.exit_code == 0
    head, _, *rows = done.stdout.splitlines()
    assert [cell.strip() for cell in head.strip("|").split("|")][1:] == ["idle", "1 M x 3, 2% fail"]
    assert {row.count("|") for row in rows} == {4}
    assert "verify them before use" in done.stderr


def test_a_machine_gets_every_line_and_the_total() -> None:
    done = runner_with({})(
        "cost", "--env", "prod", "--events-per-month", "1e6", "--failure-rate", "0.5", "--json"
    )
    (answer,) = json.loads(done.stdout)
    dollars = answer["dollars_per_month"]
    assert (answer["events"], answer["failure_rate"]) == (1e6, 0.5)
    total = dollars.pop("total")
    assert abs(sum(dollars.values()) - total) < 0.1


def test_an_unknown_environment_is_a_wrong_use() -> None:
    done = runner_with({})("cost", "--env", "nowhere")
    assert done.exit_code == 2
    assert "nowhere" in done.stderr


def test_levels_are_columns_beside_each_other() -> None:
    options = ["--events-per-month", "1e7", "--latency", "low", "--latency", "economy", "--json"]
    low, economy = json.loads(runner_with({})("cost", *options).stdout)
    assert (low["latency"], economy["latency"]) == ("low", "economy")
    assert economy["dollars_per_month"]["total"] < low["dollars_per_month"]["total"]


def test_an_unknown_level_is_a_wrong_use() -> None:
    done = runner_with({})("cost", "--latency", "fast")
    assert done.exit_code == 2
    assert "low, balanced, economy" in done.stderr


def test_a_billion_events_get_a_larger_database_and_what_the_settings_carry_is_said() -> None:
    done = runner_with({})("cost", "--events-per-month", "1e9")
    assert done.exit_code == 0
    assert "t4g.micro" not in done.stdout
    assert "the database of dev (t4g.small, 20 GB) is too small" in done.stderr
    assert "Raise api.requests_per_second" in done.stderr


def test_what_one_database_cannot_carry_is_refused() -> None:
    done = runner_with({})("cost", "--events-per-month", "1e11")
    assert done.exit_code == 2
    assert "no database" in done.stderr
    assert "docs/scale.md" in done.stderr
