"""All that can be chosen about a deployment, in one typed place: `dev`, `prod` and, for emulators, `local`.

`cdk deploy` takes `dev` when nothing is said; `-c env=prod` takes another. Change a value here, or add an
environment of your own to ENVIRONMENTS. Each is checked when it is made, and a deployment whose numbers are not
in order is never synthesised.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Literal

from shared.runtime.settings import (
    MAX_SUBSCRIPTION_TIMEOUT_SECONDS,
    PREFIX,
    InvalidSettings,
    Settings,
    read_settings,
)

VISIBILITY_FACTOR = 6
"""A message comes back after this many function timeouts, as AWS advises for event source mappings."""

GATEWAY_TIMEOUT_SECONDS = 29
"""API Gateway gives up then."""

RECORDING_SECONDS = 5
"""What delivery keeps for claiming and recording, beside the longest POST."""

CONNECTIONS_FOR_PEOPLE = 10
"""Of the database's connections, those that no function may take: operators, RDS itself, the superuser's."""


class InvalidDeployment(ValueError):
    """The numbers of an environment are not in order; one line for each that is not."""


class Nat(StrEnum):
    """How deliveries leave the VPC. Both have one fixed address, which receivers can put on their lists."""

    GATEWAY = "gateway"
    INSTANCE = "instance"
    """One small virtual machine: a tenth of the price, no failover, and nobody but you replaces it when it dies."""


@dataclass(frozen=True, slots=True)
class FunctionLimits:
    """`connections` is what one running copy opens; `concurrency` how many copies there are at most."""

    timeout_seconds: int
    concurrency: int
    connections: int = 1
    memory_mb: int = 512


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """`connection_limit` becomes max_connections; it has to suit the memory of the instance: RDS itself would allow
    about 112 for each GiB. A change counts once the instance is rebooted: `aws rds reboot-db-instance`."""

    instance_class: str = "t4g.micro"
    storage_gb: int = 20
    storage_limit_gb: int = 100
    multi_az: bool = False
    backup_days: int = 7
    keep_when_destroyed: bool = False
    connection_limit: int = 100
    proxy: bool = False


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """`requests_per_second` and `burst` hold for each method. A domain needs a certificate in the same region.

    `public_url` is what links begin with, where something of yours stands before the API. Without it they begin with
    the domain, or else with the API's own address.
    """

    requests_per_second: int = 50
    burst: int = 10
    domain_name: str | None = None
    certificate_arn: str | None = None
    public_url: str | None = None
    web_firewall: bool = False
    requests_per_address: int = 2000
    """In five minutes; counts with `web_firewall` only."""


DELIVERY_LIMITS = FunctionLimits(timeout_seconds=45, concurrency=10, memory_mb=1024)


@dataclass(frozen=True, slots=True)
class Environment:
    """One deployment. Raises InvalidDeployment when its numbers are not in order."""

    name: str
    target: Literal["aws", "local"] = "aws"
    local_python: str | None = None
    """The Python of an emulator that runs functions under its own, whatever they ask for."""

    ingest: FunctionLimits = FunctionLimits(timeout_seconds=15, concurrency=10, connections=2)
    subscriptions: FunctionLimits = FunctionLimits(timeout_seconds=28, concurrency=4, connections=2)
    admin: FunctionLimits = FunctionLimits(timeout_seconds=28, concurrency=4, connections=3)
    console: FunctionLimits = FunctionLimits(timeout_seconds=28, concurrency=2, connections=4)
    router: FunctionLimits = FunctionLimits(timeout_seconds=50, concurrency=4)
    orchestrator: FunctionLimits = FunctionLimits(timeout_seconds=50, concurrency=4)
    delivery: FunctionLimits = DELIVERY_LIMITS
    lease_cleaner: FunctionLimits = FunctionLimits(timeout_seconds=50, concurrency=1)
    health_monitor: FunctionLimits = FunctionLimits(timeout_seconds=50, concurrency=1)
    migrate: FunctionLimits = FunctionLimits(timeout_seconds=600, concurrency=1, connections=2)
    retry_concurrency: int = 4
    """Of delivery's copies, those that retries may take: a storm of retries never delays first attempts."""
    reserve_api_concurrency: bool = False
    """AWS keeps these copies for the functions of the API, and gives no more. A new account has none to reserve."""

    http_timeout_seconds: float = 15
    http_connect_timeout_seconds: float = 5
    lease_seconds: float = 60
    redispatch_seconds: float = 900
    max_retry_limit: int = 5
    """Attempts in all, for subscriptions without a limit of their own; so are the delays."""
    base_delay_seconds: float = 30
    max_delay_seconds: float = 3600
    retry_jitter: float = 0.1
    max_claims: int = 5
    disable_after_days: float = 5
    """Of nothing but failure, after which an endpoint's subscription is switched off; 0 for never."""
    payload_max_bytes: int = 262_144
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    batch_size: int = 10
    receives: int = 10
    """How often a message is tried before it goes to the redrive queue. The sweeps do its work all the same."""

    nat: Nat = Nat.INSTANCE
    zones: int = 2
    address_range: str = "10.20.0.0/16"
    """The VPC's own; only matters to you when you join it to another network."""
    endpoint_zones: int = 1
    """In how many zones the endpoints of SQS and Secrets Manager stand; each costs the same again."""
    receiver_ports: tuple[int, ...] = (443,)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    api: ApiSettings = field(default_factory=ApiSettings)

    log_days: int = 14
    alarm_mail: str | None = None
    runbook_url: str = "docs/operations/alarms.md"

    def __post_init__(self) -> None:
        if problems := list(_problems(self)):
            raise InvalidDeployment("\n".join(f"{self.name}: {problem}" for problem in problems))

    @property
    def prefix(self) -> str:
        """Begins the name of every stack, function and queue."""
        return f"hooksaga-{self.name}"

    @property
    def is_local(self) -> bool:
        """Whether this goes to an emulator: no network, database, proxy or firewall of ours."""
        return self.target == "local"

    @property
    def public_url(self) -> str | None:
        """What links begin with; None for the API's own address, which AWS chooses."""
        domain = self.api.domain_name
        return self.api.public_url or (f"https://{domain}" if domain else None)

    @property
    def functions(self) -> dict[str, FunctionLimits]:
        """The limits by the function's name."""
        names = (
            "ingest",
            "subscriptions",
            "admin",
            "console",
            "router",
            "orchestrator",
            "delivery",
            "lease_cleaner",
            "health_monitor",
            "migrate",
        )
        return {name: getattr(self, name) for name in names}

    @property
    def variables(self) -> dict[str, str]:
        """What every function's environment holds, whatever it is for."""
        settings = {f"{PREFIX}{name.upper()}": f"{getattr(self, name)}" for name in SETTINGS}
        return settings | {f"{PREFIX}LOG_LEVEL": self.log_level}

    def visibility_seconds(self, function: str) -> int:
        """How long a message stays hidden from others while this function works on it."""
        return VISIBILITY_FACTOR * self.functions[function].timeout_seconds

    @property
    def connections(self) -> int:
        """What all functions can have open at once, at their limits. A tick runs beside the queue's copies."""
        ticks = self.router.connections + self.orchestrator.connections
        return ticks + sum(limits.concurrency * limits.connections for limits in self.functions.values())


SETTINGS = tuple(one.name for one in fields(Environment) if one.name in Settings.model_fields)
"""What functions read as HOOKSAGA_<NAME>, by the same rules: shared/runtime/settings.py."""


def _problems(env: Environment) -> Iterator[str]:
    yield from _refused_by_functions(env)
    yield from _times_out_of_order(env)
    yield from _concurrency_out_of_order(env)
    if not env.is_local:
        yield from _database_out_of_order(env)


def _refused_by_functions(env: Environment) -> Iterator[str]:
    """They would read the same values at their start, and not begin."""
    try:
        read_settings(public_url=env.public_url, **{name: getattr(env, name) for name in SETTINGS})
    except InvalidSettings as error:
        yield from str(error).splitlines()


def _times_out_of_order(env: Environment) -> Iterator[str]:
    longest_post = max(env.http_timeout_seconds, MAX_SUBSCRIPTION_TIMEOUT_SECONDS) + RECORDING_SECONDS
    delivery, visibility = env.delivery.timeout_seconds, env.visibility_seconds("delivery")
    yield from _unless_below("longest POST and its recording", longest_post, "delivery's timeout", delivery)
    yield from _unless_below("delivery's timeout", delivery, "lease_seconds", env.lease_seconds)
    yield from _unless_below("lease_seconds", env.lease_seconds, "visibility timeout of delivery", visibility)
    yield from _unless_below(
        "visibility timeout of delivery", visibility, "redispatch_seconds", env.redispatch_seconds
    )
    for name in ("ingest", "subscriptions", "admin", "console"):
        timeout = env.functions[name].timeout_seconds
        yield from _unless_below(
            f"{name}'s timeout", timeout, "the gateway's timeout", GATEWAY_TIMEOUT_SECONDS
        )
    for name in ("router", "orchestrator", "lease_cleaner", "health_monitor"):
        yield from _unless_below(
            f"{name}'s timeout", env.functions[name].timeout_seconds, "a minute, its schedule", 60
        )


def _concurrency_out_of_order(env: Environment) -> Iterator[str]:
    first_attempts = env.delivery.concurrency - env.retry_concurrency
    for name, value in (
        ("router's concurrency", env.router.concurrency),
        ("orchestrator's concurrency", env.orchestrator.concurrency),
        ("retry_concurrency", env.retry_concurrency),
        ("delivery's concurrency without retry_concurrency", first_attempts),
    ):
        if not 2 <= value <= 1000:
            yield f"{name} is {value}: an event source mapping takes 2 to 1000"
    if not 1 <= env.batch_size <= 10:
        yield f"batch_size is {env.batch_size}: 1 to 10, as more would wait for a batching window"


def _database_out_of_order(env: Environment) -> Iterator[str]:
    allowed = env.database.connection_limit - CONNECTIONS_FOR_PEOPLE
    if env.connections > allowed:
        yield (
            f"the functions can open {env.connections} connections, and {allowed} of the database's are theirs: "
            "lower a concurrency, or raise connection_limit with the instance's memory and, once it is deployed, "
            "reboot the instance (aws rds reboot-db-instance)"
        )
    if not 1 <= env.endpoint_zones <= env.zones:
        yield f"endpoint_zones is {env.endpoint_zones}: 1 to {env.zones}, as there are zones"
    if env.api.domain_name and not env.api.certificate_arn:
        yield "api.domain_name needs api.certificate_arn"


def _unless_below(low_name: str, low: float, high_name: str, high: float) -> Iterator[str]:
    if low >= high:
        yield f"{low_name} ({low:g} s) must be below {high_name} ({high:g} s)"


ENVIRONMENTS = {
    "dev": Environment(name="dev"),
    "prod": Environment(
        name="prod",
        ingest=FunctionLimits(timeout_seconds=15, concurrency=50, connections=2),
        subscriptions=FunctionLimits(timeout_seconds=28, concurrency=10, connections=2),
        admin=FunctionLimits(timeout_seconds=28, concurrency=10, connections=3),
        router=FunctionLimits(timeout_seconds=50, concurrency=10),
        orchestrator=FunctionLimits(timeout_seconds=50, concurrency=20),
        delivery=FunctionLimits(timeout_seconds=45, concurrency=60, memory_mb=1024),
        retry_concurrency=20,
        reserve_api_concurrency=True,
        nat=Nat.GATEWAY,
        endpoint_zones=2,
        database=DatabaseSettings(
            instance_class="m7g.large",
            storage_gb=100,
            storage_limit_gb=1000,
            multi_az=True,
            backup_days=30,
            keep_when_destroyed=True,
            connection_limit=400,
            proxy=True,
        ),
        api=ApiSettings(requests_per_second=500, burst=200, web_firewall=True),
        log_days=90,
    ),
}

LOCAL = Environment(
    name="local", target="local", retry_concurrency=2, delivery=FunctionLimits(45, concurrency=4)
)


def environment_named(name: str) -> Environment:
    """One of ENVIRONMENTS. Raises InvalidDeployment for a name that is none."""
    try:
        return ENVIRONMENTS[name]
    except KeyError:
        raise InvalidDeployment(
            f"there is no environment {name!r}; there are: {', '.join(ENVIRONMENTS)}"
        ) from None
