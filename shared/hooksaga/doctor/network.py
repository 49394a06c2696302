"""Egress check: connects to an endpoint as a delivery would, and compares its clock with this one.

Nothing is posted: it sends a HEAD request, and accepts any response.
"""

import asyncio
import re
import ssl
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from hooksaga.adapters.connection_pool import is_address
from hooksaga.adapters.http_connections import MAX_HEAD_BYTES, client_tls
from hooksaga.adapters.resolver import AddressBlocked, NameNotFound, ResolveFailed, VettedResolver
from hooksaga.core.callback_url import CallbackUrl, InvalidCallbackUrl, parse_callback_url
from hooksaga.core.product import USER_AGENT
from hooksaga.doctor.check import Check, skipped
from hooksaga.runtime.settings import Settings

MAX_CLOCK_SECONDS = 60.0
"""Receivers reject signatures that are minutes old; half of that time is kept for the transport."""

EGRESS = "receivers can be reached"
CLOCK = "the local clock agrees with a receiver's"

_DATE = re.compile(rb"^date:[ \t]*([^\r\n]+)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reached:
    """address: the one used. head: the response head, as far as it was read."""

    address: str
    tls: str
    head: bytes


async def check_egress(settings: Settings, url: str | None) -> list[Check]:
    """Return both checks of the URL. Without a URL, or offline, both are skipped, which is not a fault."""
    if url is None:
        why = "not checked: pass an https:// URL of another host with --probe"
        return [skipped(EGRESS, why), skipped(CLOCK, "not checked: requires an answer to --probe")]
    try:
        reached = await _reach(settings, parse_callback_url(url, settings.address_policy))
    except InvalidCallbackUrl as error:
        return [Check(EGRESS, [f"--probe: {error}"], url), skipped(CLOCK, "no connection")]
    except (AddressBlocked, NameNotFound, ResolveFailed, OSError, TimeoutError) as error:
        return [Check(EGRESS, [_advice(error)], url), skipped(CLOCK, "no connection")]
    return [Check(EGRESS, seen=f"{url} at {reached.address} by {reached.tls}"), _judge_clock(reached.head)]


async def _reach(settings: Settings, url: CallbackUrl) -> Reached:
    tls = client_tls(str(settings.ca_file) if settings.ca_file else None)
    async with asyncio.timeout(settings.http_timeout_seconds):
        return await _head(url, await _address_of(settings, url), tls)


async def _address_of(settings: Settings, url: CallbackUrl) -> str:
    """Return the address that a delivery would try first. A literal address was checked with the URL."""
    if is_address(url.host):
        return url.host
    resolver = VettedResolver(settings.address_policy)
    try:
        return (await resolver.addresses(url.host))[0]
    finally:
        await resolver.close()


async def _head(url: CallbackUrl, address: str, tls: ssl.SSLContext) -> Reached:
    reader, writer = await asyncio.open_connection(
        address, url.port, ssl=tls, server_hostname=url.host, limit=MAX_HEAD_BYTES
    )
    try:
        host = url.origin.removeprefix("https://")
        request = f"HEAD / HTTP/1.1\r\nhost: {host}\r\nuser-agent: {USER_AGENT}\r\nconnection: close\r\n\r\n"
        writer.write(request.encode("ascii"))
        head = await _read_head(reader)
        return Reached(address, str(writer.get_extra_info("ssl_object").version()), head)
    finally:
        writer.transport.abort()


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as ended:
        return ended.partial
    except asyncio.LimitOverrunError:
        return b""


def _advice(error: Exception) -> str:
    match error:
        case NameNotFound():
            return "the name does not exist in DNS: check the URL and the system's DNS servers"
        case ResolveFailed():
            return "no DNS server answered: check /etc/resolv.conf and the network"
        case AddressBlocked():
            return "the address is not public: allow it with HOOKSAGA_EGRESS_ALLOW if receivers use it"
        case ssl.SSLCertVerificationError():
            return f"the certificate is not trusted ({error.verify_message}): see HOOKSAGA_CA_FILE"
        case TimeoutError():
            return "timeout: check that the firewall allows outgoing connections to this port"
        case _:
            return f"{error}: check that the firewall allows outgoing connections to this port"


def _judge_clock(head: bytes) -> Check:
    found = _DATE.search(head)
    try:
        theirs = parsedate_to_datetime(found[1].decode("ascii")).timestamp() if found else None
    except ValueError:
        theirs = None
    if theirs is None:
        return skipped(CLOCK, "the answer has no date")
    apart = abs(time.time() - theirs)
    fault = f"the clocks differ by {apart:.0f} s, and receivers refuse old signatures: use NTP"
    return Check(CLOCK, [fault] if apart > MAX_CLOCK_SECONDS else [], f"{apart:.0f} s")
