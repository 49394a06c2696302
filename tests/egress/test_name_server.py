"""Our real resolver and sender before a name server that may say anything."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.callback_url import parse_callback_url
from tests.egress.cases import CASES, NO_REFUSAL, REAL_BUT_REFUSED, Case, case_of, table_case, table_rows
from tests.egress.network import IsolatedNetwork

pytestmark = pytest.mark.timeout(60)

ROWS = table_rows()
SLACK_MS = 1500
"""For a machine that is busy: from a deadline to the end of the attempt."""


def check(case: Case, seen: dict[str, Any]) -> None:
    """The right word and the vetted peer, nobody else reached, and all of it in time."""
    words = [one["error_code"] or f"http_{one['response_status']}" for one in seen["outcomes"]]
    peers = [one["resolved_ip"] for one in seen["outcomes"]]
    assert list(zip(words, peers, strict=True)) == list(case.want)
    assert len(seen["reached"]) == len([peer for peer in peers if peer is not None])
    for one in seen["outcomes"]:
        assert one["duration_ms"] < min(case.deadline, case.connect) * 1000 + SLACK_MS


@pytest.mark.hostile("Name servers")
@pytest.mark.parametrize("name", CASES)
def test_what_a_name_server_may_say(network: IsolatedNetwork, name: str) -> None:
    case = CASES[name]
    seen = network.attempt(case=name)
    check(case, seen)
    assert [local for local, _, _ in seen["reached"]] == [peer for _, peer in case.want if peer is not None]
    if case.asked is not None:
        assert sorted(seen["asked"]) == sorted(case.asked)


@pytest.mark.parametrize("address", REAL_BUT_REFUSED)
def test_what_was_refused_would_have_answered(network: IsolatedNetwork, address: str) -> None:
    """Otherwise the refusals above would prove nothing."""
    name = NO_REFUSAL + address
    check(case_of(name), network.attempt(case=name))


@pytest.mark.hostile("Callback URLs, when they are called")
@pytest.mark.parametrize("url", ROWS, ids=str)
def test_a_row_of_the_table_of_callback_urls(network: IsolatedNetwork, url: str) -> None:
    """The request has the normalized host and the registered target."""
    case = table_case(ROWS[url])
    seen = network.attempt(row=url)
    check(case, seen)
    parsed, given = parse_callback_url(url, AddressPolicy()), urlsplit(url)
    host = parsed.host if parsed.port == 443 else f"{parsed.host}:{parsed.port}"
    target = (given.path or "/") + (f"?{given.query}" if given.query else "")
    assert {(host, target) for _, host, target in seen["reached"]} <= {(host, target)}
