"""Limits of AWS for a deployment's settings. AWS itself refuses most of them only during a deployment."""

import re
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hooksaga.aws.deployment import Environment

MAX_NAME_LENGTH = 30
"""An EventBridge rule has 64 characters: `hooksaga-<name>-health_monitor-tick`."""

LOG_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827),
    *(2192, 2557, 2922, 3288, 3653),
)
"""Retention times that CloudWatch Logs allows."""

MIN_ZONES, MAX_ZONES = 2, 6
SUBNET_SIZES = {"public": 26, "outbound": 22, "inside": 24, "database": 24}
"""Prefix lengths of the subnets in each zone."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_DOMAIN = re.compile(r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}")
_CERTIFICATE = re.compile(r"arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate/.+|\$\{Token\[.+\]\}")
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_CLASS = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")


def limit_problems(env: "Environment") -> Iterator[str]:
    """Return one line for each setting that AWS would refuse, with its name and the rule."""
    yield from _name_problems(env)
    if not env.is_local:
        yield from _network_problems(env)
        yield from _database_problems(env)
        yield from _api_problems(env)
        yield from _function_problems(env)


def least_storage_limit(storage_gb: int) -> int:
    """Return the smallest limit of storage that RDS takes, in GB: a tenth above the storage."""
    return -(-11 * storage_gb // 10)


def _name_problems(env: "Environment") -> Iterator[str]:
    if not _NAME.fullmatch(env.name):
        yield (
            f"name is {env.name!r}: lower-case letters, digits and single hyphens, from a letter to a letter or digit"
        )
    if len(env.name) > MAX_NAME_LENGTH:
        yield f"name has {len(env.name)} characters: at most {MAX_NAME_LENGTH}, as names of resources contain it"
    if env.log_days not in LOG_DAYS:
        allowed = ", ".join(map(str, LOG_DAYS))
        yield f"log_days is {env.log_days}: CloudWatch Logs allows {allowed}"
    if env.alarm_mail is not None and not _MAIL.fullmatch(env.alarm_mail):
        yield f"alarm_mail is {env.alarm_mail!r}: one mail address"


def _network_problems(env: "Environment") -> Iterator[str]:
    if not MIN_ZONES <= env.zones <= MAX_ZONES:
        yield f"zones is {env.zones}: {MIN_ZONES} to {MAX_ZONES}, as RDS needs subnets in two"
    try:
        network = IPv4Network(env.address_range)
    except (AddressValueError, NetmaskValueError, ValueError) as error:
        yield f"address_range is {env.address_range!r}: an IPv4 range like 10.20.0.0/16 ({error})"
    else:
        needed = _addresses_of(env.zones)
        if network.prefixlen < 16:
            yield f"address_range is {env.address_range}: a VPC has at most a /16"
        elif network.num_addresses < needed:
            yield f"address_range is {env.address_range}: {env.zones} zones need {needed} addresses, such as a /16"
    ports = [port for port in env.receiver_ports if not 1 <= port <= 65535]
    if ports or not env.receiver_ports:
        yield f"receiver_ports is {env.receiver_ports}: one or more ports from 1 to 65535"


def _addresses_of(zones: int) -> int:
    """Return the size of a range in which the subnets follow each other, each at a multiple of its size."""
    end = 0
    for prefix in SUBNET_SIZES.values():
        size = 2 ** (32 - prefix)
        end = ceil(end / size) * size + size * zones
    return end


def _database_problems(env: "Environment") -> Iterator[str]:
    wanted = env.database
    if not _CLASS.fullmatch(wanted.instance_class) or wanted.instance_class.startswith("db."):
        yield f"database.instance_class is {wanted.instance_class!r}: like t4g.micro, without a leading db."
    yield from _unless_within("database.storage_gb", wanted.storage_gb, 20, 65_536)
    if wanted.storage_limit_gb < least_storage_limit(wanted.storage_gb):
        yield (
            f"database.storage_limit_gb is {wanted.storage_limit_gb}: a tenth more than storage_gb "
            f"({wanted.storage_gb}) or above"
        )
    yield from _unless_within("database.backup_days", wanted.backup_days, 1, 35)
    yield from _unless_within("database.connection_limit", wanted.connection_limit, 6, 262_143)


def _api_problems(env: "Environment") -> Iterator[str]:
    wanted = env.api
    yield from _unless_within("api.requests_per_second", wanted.requests_per_second, 1, 10_000)
    yield from _unless_within("api.burst", wanted.burst, 1, 5000)
    yield from _unless_within("api.requests_per_address", wanted.address_limit, 10, 2_000_000_000)
    if wanted.domain_name is not None and not _DOMAIN.fullmatch(wanted.domain_name):
        yield f"api.domain_name is {wanted.domain_name!r}: a host name in lower case, without scheme and path"
    if wanted.domain_name is not None and wanted.certificate_arn is None:
        yield "api.domain_name needs api.certificate_arn"
    if wanted.certificate_arn is not None and not _CERTIFICATE.fullmatch(wanted.certificate_arn):
        yield f"api.certificate_arn is {wanted.certificate_arn!r}: the ARN of a certificate of ACM"


def _function_problems(env: "Environment") -> Iterator[str]:
    for name, limits in env.functions.items():
        yield from _unless_within(f"{name}.timeout_seconds", limits.timeout_seconds, 1, 900)
        yield from _unless_within(f"{name}.memory_mb", limits.memory_mb, 128, 10_240)
        yield from _unless_within(f"{name}.concurrency", limits.concurrency, 1, 1000)
    yield from _unless_within("receives", env.receives, 1, 1000)
    yield from _unless_within("intake_receives", env.intake_receives, 1, 1000)


def _unless_within(name: str, value: float, low: int, high: int) -> Iterator[str]:
    if not low <= value <= high:
        yield f"{name} is {value:g}: {low:,} to {high:,}"
