"""Policy of the addresses that a delivery may connect to.

The list of special networks is built from the IANA special-purpose registries, because the standard library's
definition of a global address differs between Python versions and is incomplete.

IPv6 prefixes that embed an IPv4 address (mapped, compatible, 6to4, Teredo, NAT64) are refused as a whole, whatever the
address: an endpoint with an IPv4 address is reached by that address.

The operator's allowed networks take precedence, within their own family: allowing 127.0.0.0/8 does not allow
::ffff:127.0.0.1, which needs an IPv6 entry.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

REFUSED_IPV4 = (
    "0.0.0.0/8",  # this host on this network
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # shared address space of carriers (CGNAT)
    "127.0.0.0/8",  # loopback
    "168.63.129.16/32",  # Azure's platform services, inside a public range
    "169.254.0.0/16",  # link-local, with the clouds' metadata services
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # IETF protocol assignments, with Oracle's metadata service
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # former 6to4 relays
    "192.168.0.0/16",  # private
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, with the broadcast address
)

# The first three leave only 2000::/3, the global unicast space. They contain: unspecified, loopback, IPv4-compatible
# and IPv4-mapped (::/96, ::ffff:0:0/96), NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard-only (100::/64), SRv6
# (5f00::/16), unique local (fc00::/7), link-local (fe80::/10), site-local (fec0::/10) and multicast (ff00::/8).
REFUSED_IPV6 = (
    "::/3",
    "4000::/2",
    "8000::/1",
    "2001::/23",  # IETF protocol assignments: Teredo, benchmarks, ORCHID, drone ids
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4
    "3fff::/20",  # documentation
)


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    allow: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, cidrs: str | Iterable[str]) -> "AddressPolicy":
        """Parse `127.0.0.0/8, fd00::/8`, or a sequence of such parts; blank parts are skipped.

        Raises ValueError with the part that is not a network, for example because host bits are set.
        """
        parts = cidrs.split(",") if isinstance(cidrs, str) else cidrs
        return cls(tuple(_network(part.strip()) for part in parts if part.strip()))

    def permits(self, address: str | Address) -> bool:
        """Return whether a connection to the address is permitted. False for invalid text, and for a zone id."""
        parsed = _address(address)
        if parsed is None:
            return False
        return _covered(parsed, self.allow) or not _covered(parsed, _refused_networks())


def _network(cidr: str) -> Network:
    try:
        return ip_network(cidr)
    except ValueError as fault:
        raise ValueError(f"{cidr!r} is not a network in CIDR form: {fault}") from fault


def _address(address: str | Address) -> Address | None:
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    # A zone names an interface of this machine, never a public address.
    return None if isinstance(parsed, IPv6Address) and parsed.scope_id is not None else parsed


def _covered(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks)


@cache
def _refused_networks() -> tuple[Network, ...]:
    return tuple(ip_network(cidr) for cidr in REFUSED_IPV4 + REFUSED_IPV6)
