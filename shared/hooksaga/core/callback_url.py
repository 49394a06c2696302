"""Validation and normalization of callback URLs.

The rules are checked in this order. An invalid URL is rejected, never repaired, so that all programs read the same
host from it.

- length: at most 500 characters in its normal form.
- characters: printable ASCII without spaces and backslashes. Only the host may contain other letters; other text in
  path and query must be percent-encoded.
- scheme: https://.
- fragment, userinfo: none, not even an empty one.
- host: an IDNA 2008 name (compatibility letters such as full-width ones are folded first; ASCII names consist of
  letters, digits and hyphens), or an address. A name whose last label is a number must be a dotted IPv4 address;
  shorter, hexadecimal and octal forms are rejected. One final dot is dropped.
- local_name: no single labels, special-use names (RFC 6761) or names used inside networks only.
  localhost and its subdomains are accepted if the policy permits 127.0.0.1.
- address: a literal address must be permitted by the address policy.
- port: any, except those of well-known services other than HTTPS.

In the normal form, scheme and host are lower-case ASCII, a default port and an empty query are dropped, and the path
is at least `/`. Path and query are not changed. Normalization is idempotent.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Address, IPv6Address

import idna

from hooksaga.core.address_policy import AddressPolicy

MAX_URL_LENGTH = 500
HTTPS_PORT = 443

# Longer text has no normal form that fits; this limits the work for one URL.
_MAX_INPUT_LENGTH = 4 * MAX_URL_LENGTH
_MAX_HOST_LENGTH = 253
_PRINTABLE_ASCII = re.compile(r"[!-\[\]-~]*")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[0-9]{1,5}")

# The last labels of IANA's special-use names: RFC 6761 (example, invalid, localhost, test), RFC 6762 (local), RFC 7686
# (onion), RFC 9476 (alt), and internal, which ICANN reserves. arpa contains reverse lookups, home networks (RFC 8375)
# and other infrastructure. example.com, .net and .org are in the public DNS.
_SPECIAL_USE = frozenset(
    {"alt", "arpa", "example", "internal", "invalid", "local", "localhost", "onion", "test"}
)
# Labels that the root zone lacks and that networks, Kubernetes and Consul use internally.
_USED_INSIDE = frozenset(
    {"consul", "corp", "home", "intranet", "lan", "localdomain", "mail", "private", "svc", "workgroup"}
)
# ftp ssh telnet smtp dns finger pop3 portmapper ident msrpc netbios imap ldap smb smtps syslog submission
# ldaps imaps pop3s, mssql oracle nfs docker etcd mysql rdp postgresql amqp vnc redis elasticsearch memcached
# mongodb
_OTHER_SERVICES = frozenset(
    {21, 22, 23, 25, 53, 79, 110, 111, 113, 135, 137, 138, 139, 143, 389, 445, 465, 514, 587, 636, 993, 995}
    | {1433, 1521, 2049, 2375, 2376, 2379, 3306, 3389, 5432, 5672, 5900, 6379, 9200, 9300, 11211, 27017}
)


class UrlRule(StrEnum):
    """The rule that a rejected URL breaks."""

    LENGTH = "length"
    CHARACTERS = "characters"
    SCHEME = "scheme"
    FRAGMENT = "fragment"
    USERINFO = "userinfo"
    HOST = "host"
    LOCAL_NAME = "local_name"
    ADDRESS = "address"
    PORT = "port"


class InvalidCallbackUrl(ValueError):
    """An invalid callback URL. The message is for the URL's owner and contains no part of the URL."""

    def __init__(self, rule: UrlRule, message: str) -> None:
        super().__init__(message)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class CallbackUrl:
    """A URL in normal form. host is ASCII; an IPv6 address has no brackets."""

    url: str
    host: str
    port: int

    @property
    def origin(self) -> str:
        """`https://host:port`, the only part of a callback URL that may be logged."""
        return f"https://{_in_url(self.host)}:{self.port}"


def parse_callback_url(url: str, policy: AddressPolicy) -> CallbackUrl:
    """Return the normal form of url. Raises InvalidCallbackUrl with the first broken rule. Makes no DNS lookups."""
    _require(len(url) <= _MAX_INPUT_LENGTH, UrlRule.LENGTH, _TOO_LONG)
    authority, target = _split(url)
    host_text, port_text = _split_authority(authority)
    host = _parse_host(host_text, policy)
    port = _parse_port(port_text)
    port_part = "" if port == HTTPS_PORT else f":{port}"
    normal = f"https://{_in_url(host)}{port_part}{target}"
    _require(len(normal) <= MAX_URL_LENGTH, UrlRule.LENGTH, _TOO_LONG)
    return CallbackUrl(normal, host, port)


_TOO_LONG = f"callback_url must have at most {MAX_URL_LENGTH} characters"


def _require(holds: bool, rule: UrlRule, message: str) -> None:
    if not holds:
        raise InvalidCallbackUrl(rule, message)


def _split(url: str) -> tuple[str, str]:
    _require(
        not any(character.isspace() or not character.isprintable() or character == "\\" for character in url),
        UrlRule.CHARACTERS,
        "callback_url must not contain spaces, control or invisible characters, or backslashes",
    )
    _require(url[:8].lower() == "https://", UrlRule.SCHEME, "callback_url must start with https://")
    _require("#" not in url, UrlRule.FRAGMENT, "callback_url must not have a fragment (#)")
    end = next((at for at in range(8, len(url)) if url[at] in "/?"), len(url))
    return url[8:end], _request_target(url[end:])


def _request_target(target: str) -> str:
    _require(
        _PRINTABLE_ASCII.fullmatch(target) is not None,
        UrlRule.CHARACTERS,
        "callback_url must percent-encode non-ASCII characters in its path and query",
    )
    path, _, query = target.partition("?")
    return (path or "/") + (f"?{query}" if query else "")


def _split_authority(authority: str) -> tuple[str, str]:
    """Return the host, with the brackets of an IPv6 address, and the text of the port."""
    _require(
        "@" not in authority, UrlRule.USERINFO, "callback_url must not contain a user name or password (@)"
    )
    if authority.startswith("["):
        host, bracket, rest = authority.partition("]")
        closed = bracket == "]" and rest[:1] in ("", ":")
        _require(closed, UrlRule.HOST, "callback_url has unbalanced brackets around its host")
        return host + bracket, rest[1:]
    host, _, port = authority.partition(":")
    _require(":" not in port, UrlRule.HOST, "an IPv6 address in callback_url must be in brackets")
    return host, port


def _parse_port(text: str) -> int:
    if not text:
        return HTTPS_PORT
    port = int(text) if _PORT.fullmatch(text) else 0
    _require(1 <= port <= 65535, UrlRule.PORT, "the port of callback_url must be a number from 1 to 65535")
    _require(
        port not in _OTHER_SERVICES,
        UrlRule.PORT,
        f"callback_url must not use port {port}, the port of another service",
    )
    return port


def _parse_host(text: str, policy: AddressPolicy) -> str:
    _require(text != "", UrlRule.HOST, "callback_url must have a host")
    if text.startswith("["):
        return _permitted(_parse_ipv6(text[1:-1]), policy)
    host = _ascii_name(text).removesuffix(".")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        return _permitted(_parse_ipv4(host), policy)
    _check_labels(host)
    _refuse_local_name(host, policy)
    return host


def _parse_ipv6(text: str) -> IPv6Address:
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise InvalidCallbackUrl(
            UrlRule.HOST, "the bracketed host of callback_url must be an IPv6 address"
        ) from None
    _require(
        address.scope_id is None, UrlRule.HOST, "an IPv6 address in callback_url must not have a zone id"
    )
    return address


def _parse_ipv4(text: str) -> IPv4Address:
    try:
        return IPv4Address(text)
    except AddressValueError:
        message = "an IPv4 address in callback_url must be four decimal numbers"
        raise InvalidCallbackUrl(UrlRule.HOST, message) from None


def _permitted(address: IPv4Address | IPv6Address, policy: AddressPolicy) -> str:
    _require(policy.permits(address), UrlRule.ADDRESS, "the address in callback_url is not permitted")
    return address.compressed


def _ascii_name(text: str) -> str:
    if text.isascii():
        return text.lower()
    try:
        return idna.encode(text, uts46=True).decode("ascii")
    except UnicodeError:
        raise InvalidCallbackUrl(UrlRule.HOST, _BAD_NAME) from None


_BAD_NAME = "the host of callback_url must be a valid domain name"


def _check_labels(host: str) -> None:
    labels = host.split(".")
    valid = len(host) <= _MAX_HOST_LENGTH and all(_LABEL.fullmatch(label) for label in labels)
    _require(valid and all(map(_is_valid_punycode, labels)), UrlRule.HOST, _BAD_NAME)


def _is_valid_punycode(label: str) -> bool:
    """Return whether a label is plain, or the encoding of exactly one international label."""
    if not label.startswith("xn--"):
        return True
    try:
        return idna.alabel(idna.ulabel(label)) == label.encode("ascii")
    except UnicodeError:
        return False


def _refuse_local_name(host: str, policy: AddressPolicy) -> None:
    if host == "localhost" or host.endswith(".localhost"):
        allowed = policy.permits("127.0.0.1")
    else:
        _, dot, last = host.rpartition(".")
        allowed = dot != "" and last not in _SPECIAL_USE | _USED_INSIDE
    _require(allowed, UrlRule.LOCAL_NAME, "the host of callback_url must be a public DNS name")


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
