"""The policy is exactly the two IANA registries of special-purpose addresses, plus what is named here.

The file beside this one has a row for every block of the registries for IPv4 and IPv6. A block that IANA adds is a
new row in it, and fails here until the policy knows it.
"""

import csv
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from pathlib import Path

import pytest

from hooksaga.core.address_policy import REFUSED_IPV4, REFUSED_IPV6, AddressPolicy

STRICT = AddressPolicy()
TABLE = Path(__file__).with_name("special_purpose_addresses.csv").read_text("utf-8")
ROWS = list(csv.DictReader(TABLE.splitlines()))
NOT_REACHABLE = [row["block"] for row in ROWS if row["globally_reachable"] != "yes"]
REACHABLE = [row["block"] for row in ROWS if row["globally_reachable"] == "yes"]

REFUSED_THOUGH_REACHABLE = {
    "192.0.0.9/32": "inside 192.0.0.0/24, where nobody has a receiver",
    "192.0.0.10/32": "inside 192.0.0.0/24",
    "64:ff9b::/96": "carries an IPv4 address, of whatever kind",
    "2001:1::1/128": "inside 2001::/23, where nobody has a receiver",
    "2001:1::2/128": "inside 2001::/23",
    "2001:1::3/128": "inside 2001::/23",
    "2001:3::/32": "inside 2001::/23",
    "2001:4:112::/48": "inside 2001::/23",
    "2001:20::/28": "inside 2001::/23",
    "2001:30::/28": "inside 2001::/23",
}
REFUSED_BESIDES = {
    "168.63.129.16/32": "Azure's platform services, inside a public range",
    "224.0.0.0/4": "multicast has a registry of its own",
    "::/3": "all but 2000::/3 is outside the global unicast space",
    "4000::/2": "outside the global unicast space",
    "8000::/1": "outside the global unicast space",
}


def networks(
    blocks: Iterable[str],
) -> tuple[list[IPv4Network], list[IPv6Network]]:
    """The fewest networks that cover the same addresses, for each family."""
    parsed = [ip_network(block) for block in blocks]
    return (
        list(collapse_addresses(one for one in parsed if isinstance(one, IPv4Network))),
        list(collapse_addresses(one for one in parsed if isinstance(one, IPv6Network))),
    )


def test_the_table_has_every_row_of_both_registries() -> None:
    assert len({row["block"] for row in ROWS}) == len(ROWS) == 26 + 25


def test_the_policy_is_the_registries_and_what_is_named_here() -> None:
    expected = networks([*NOT_REACHABLE, *REFUSED_THOUGH_REACHABLE, *REFUSED_BESIDES])
    assert networks([*REFUSED_IPV4, *REFUSED_IPV6]) == expected


def ends(block: str) -> list[str]:
    network = ip_network(block)
    return [str(network[at]) for at in (0, network.num_addresses // 2, -1)]


@pytest.mark.parametrize("block", [*NOT_REACHABLE, *REFUSED_THOUGH_REACHABLE, *REFUSED_BESIDES])
def test_a_refused_block_is_refused_from_end_to_end(block: str) -> None:
    assert [address for address in ends(block) if STRICT.permits(address)] == []


@pytest.mark.parametrize("block", [block for block in REACHABLE if block not in REFUSED_THOUGH_REACHABLE])
def test_a_reachable_block_is_permitted(block: str) -> None:
    assert [address for address in ends(block) if not STRICT.permits(address)] == []
