"""Parts of the settings of a deployment, which hooksaga.aws.deployment puts together."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Nat(StrEnum):
    """Path by which deliveries leave the VPC. Both have one fixed address, which receivers can allow."""

    GATEWAY = "gateway"
    INSTANCE = "instance"
    """A small virtual machine: a tenth of the price, without failover; a failed one must be replaced by hand."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """Settings of the database. `connection_limit` becomes max_connections and must suit the memory of the instance:
    the RDS default is about 112 per GiB. A change applies after a reboot: `aws rds reboot-db-instance`.

    Of an existing database only `connection_limit`, its max_connections, and `ca_file` are used.
    """

    instance_class: str = "t4g.small"
    """A login by IAM takes memory and processor time of the instance besides: AWS advises 300 MiB to 1 GiB."""
    storage_gb: int = 20
    storage_limit_gb: int = 100
    multi_az: bool = False
    backup_days: int = 7
    keep_when_destroyed: bool = False
    connection_limit: int = 200
    proxy: bool = False
    """RDS Proxy. Behind it statements are planned anew each time: the database's processors carry about half."""
    ca_file: Path | None = None
    """PEM file of certificate authorities for the database's certificate, instead of those of RDS in this package."""


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """API settings. `requests_per_second` and `burst` apply per method. A domain needs a certificate in its region.

    `public_url` is the start of links, if you run a proxy in front of the API. Without it, links start with
    the domain, or otherwise with the API's own address.
    """

    requests_per_second: int = 50
    burst: int = 10
    domain_name: str | None = None
    certificate_arn: str | None = None
    public_url: str | None = None
    web_firewall: bool = False
    requests_per_address: int | None = None
    """Limit per address in five minutes; used with `web_firewall` only. By default one address may use all of
    `requests_per_second`: behind one NAT a single producer has one."""
    access_log: bool = False
    """Write an access log and the gateway's errors. The account needs a role for the logs of API Gateway."""
    account_log_role: bool = False
    """Create this role and make it the account's, for all its APIs. It replaces a present one."""

    @property
    def address_limit(self) -> int:
        return self.requests_per_address or 300 * self.requests_per_second
