"""The policy at the borders of its networks, and against the ways to write an address."""

from ipaddress import IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.core.address_policy import REFUSED_IPV4, REFUSED_IPV6, AddressPolicy

STRICT = AddressPolicy()

# Beside the registries, which test_special_purpose_registries.py has.
SPECIAL = [
    "168.63.129.16/32",
    "192.0.0.192/32",
    "::/96",
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
    "fec0::/10",
    "ff00::/8",
    "4000::/3",
    "8000::/2",
]

# One step outside a refused block, and well-known public addresses.
PUBLIC = [
    "1.0.0.0",
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.1.255",
    "192.0.3.0",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.98.255",
    "192.88.100.0",
    "192.167.255.255",
    "192.169.0.0",
    "192.175.48.1",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "198.51.101.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "2000::1",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2001:db7:ffff::1",
    "2001:db9::1",
    "2003::1",
    "2606:4700:4700::1111",
    "2620:4f:8000::1",
    "3ffe::1",
    "3fff:1000::1",
]


@pytest.mark.parametrize("cidr", SPECIAL)
def test_special_networks_are_refused_from_end_to_end(cidr: str) -> None:
    network = ip_network(cidr)
    middle = network[network.num_addresses // 2]
    assert not any(STRICT.permits(address) for address in (network[0], middle, network[-1]))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_permitted(address: str) -> None:
    assert STRICT.permits(address)
    assert STRICT.permits(ip_address(address))


@pytest.mark.parametrize("cidr", [*REFUSED_IPV4, *REFUSED_IPV6])
def test_each_refused_network_does_its_part(cidr: str) -> None:
    """Addresses inside are refused, and permitted if the operator allows the network."""
    network = ip_network(cidr)
    assert not STRICT.permits(network[-1])
    assert AddressPolicy((network,)).permits(network[-1])


@pytest.mark.parametrize("inner", ["8.8.8.8", "127.0.0.1", "169.254.169.254", "10.0.0.1"])
@pytest.mark.parametrize(
    "form",
    ["::ffff:{0}", "::{0}", "64:ff9b::{0}", "64:ff9b:1::{0}", "2002:{1}::1", "2001:0:{1}::1", "::ffff:0:{0}"],
)
def test_ipv6_forms_of_ipv4_are_refused_whatever_is_inside(form: str, inner: str) -> None:
    number = int(ip_address(inner))
    address = form.format(inner, f"{number >> 16:x}:{number & 0xFFFF:x}")
    assert ip_address(address).version == 6
    assert not STRICT.permits(address)
    assert not AddressPolicy.parse("0.0.0.0/0").permits(address)
    assert AddressPolicy.parse("::/0").permits(address)


NO_PLAIN_ADDRESS = [
    *(
        "",
        " ",
        "localhost",
        "127.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "2130706433",
        "8.8.8.8 ",
        "8.8.8",
        "8.8.8.8.8",
    ),
    *(
        "08.8.8.8",
        "[2606:4700::1]",
        "2606:4700::1%eth0",
        "fe80::1%1",
        "8.8.8.8/32",
        "\u0661.1.1.1",
        "1.1.1.1\0",
    ),
]


@pytest.mark.parametrize("text", NO_PLAIN_ADDRESS)
def test_text_that_is_no_plain_address_is_refused(text: str) -> None:
    assert not AddressPolicy.parse("0.0.0.0/0,::/0").permits(text)


def test_what_is_allowed_wins_and_nothing_else_changes() -> None:
    policy = AddressPolicy.parse("127.0.0.0/8, fd00::/8,10.1.2.3")
    assert policy.permits("127.0.0.1")
    assert policy.permits("127.255.255.255")
    assert policy.permits("fd12::1")
    assert policy.permits("10.1.2.3")
    assert policy.permits("8.8.8.8")
    assert not policy.permits("10.1.2.4")
    assert not policy.permits("::1")
    assert not policy.permits("fc00::1")


@pytest.mark.parametrize("cidrs", ["", " ", ",", " , ,"])
def test_nothing_allowed(cidrs: str) -> None:
    assert AddressPolicy.parse(cidrs) == STRICT


def test_networks_may_come_as_parts() -> None:
    assert AddressPolicy.parse(["127.0.0.0/8", " ", "fd00::/8"]) == AddressPolicy.parse(
        "127.0.0.0/8,fd00::/8"
    )


@pytest.mark.parametrize(
    "bad", ["127.0.0.1/8", "127.0.0.0/33", "localhost", "127.0.0.0/8 10.0.0.0/8", "::1/129", "127/8", "*"]
)
def test_a_bad_network_is_named(bad: str) -> None:
    with pytest.raises(ValueError, match="is not a network") as raised:
        AddressPolicy.parse(f"10.0.0.0/8, {bad}")
    assert repr(bad) in str(raised.value)


@given(st.integers(min_value=0, max_value=2**128 - 1))
def test_outside_global_unicast_no_ipv6_is_permitted(number: int) -> None:
    if number >> 125 != 1:
        assert not STRICT.permits(IPv6Address(number))
