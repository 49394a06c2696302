"""All options of a deployment, in one typed place: `dev`, `prod` and, for emulators, `local`.

`cdk deploy` uses `dev` by default; `-c env=prod` selects another. Change a value here, or add your own
environment to ENVIRONMENTS. Each is validated when it is created: inconsistent numbers are never synthesised.
"""

from dataclasses import dataclass, field, fields, replace
from math import ceil
from pathlib import Path
from typing import Any, Literal

from hooksaga.aws.deployment_limits import limit_problems
from hooksaga.aws.deployment_order import problems_of
from hooksaga.aws.deployment_parts import ApiSettings, DatabaseSettings, Nat
from hooksaga.aws.latency import LEVELS, Batching, Latency, longest_gathering_seconds
from hooksaga.runtime.settings import LEASE_MARGIN_SECONDS, PREFIX, InvalidSettings, Settings, read_settings

VISIBILITY_FACTOR = 6
"""A message comes back after this many function timeouts, as AWS advises for event source mappings."""


class InvalidDeployment(InvalidSettings):
    """The numbers of an environment are inconsistent; the message has one line per broken rule."""


@dataclass(frozen=True, slots=True)
class FunctionLimits:
    """Limits of a function. `connections`: opened by one running copy. `concurrency`: maximum number of copies."""

    timeout_seconds: int
    concurrency: int
    connections: int = 1
    memory_mb: int = 512


FOLLOWS: Any = None
"""Default of a field that is derived from others, or whose default is that of one machine."""


def delivery_limits(lease_seconds: float | None, *, concurrency: int = 20) -> FunctionLimits:
    """Return the limits of the delivery function for a chosen lease; None if none was chosen.

    Of the 20 copies 16 are for quick receivers: the first attempts to an endpoint that begins to hang take ten of them.
    """
    timeout = 45 if lease_seconds is None else min(45, ceil(lease_seconds) - 1)
    return FunctionLimits(timeout, concurrency)


@dataclass(frozen=True, slots=True)
class Environment:
    """One deployment. Raises InvalidDeployment when its numbers are inconsistent.

    Fields that are not given are derived from the given ones, so that one field can be changed alone.
    """

    name: str
    target: Literal["aws", "local"] = "aws"
    local_python: str | None = None
    """The Python version of an emulator that ignores the functions' runtime."""

    ingest: FunctionLimits = FunctionLimits(timeout_seconds=15, concurrency=10, connections=2)
    intake: FunctionLimits = FunctionLimits(timeout_seconds=30, concurrency=4)
    subscriptions: FunctionLimits = FunctionLimits(timeout_seconds=28, concurrency=4, connections=2)
    admin: FunctionLimits = FunctionLimits(timeout_seconds=28, concurrency=4, connections=3)
    console: FunctionLimits = FunctionLimits(timeout_seconds=28, concurrency=6, connections=4)
    """The pages of operators and subscribers. A browser asks for a page, its styles and scripts at once."""
    router: FunctionLimits = FunctionLimits(timeout_seconds=50, concurrency=4)
    orchestrator: FunctionLimits = FunctionLimits(timeout_seconds=50, concurrency=4)
    delivery: FunctionLimits = FOLLOWS
    lease_cleaner: FunctionLimits = FunctionLimits(timeout_seconds=50, concurrency=1)
    health_monitor: FunctionLimits = FunctionLimits(timeout_seconds=50, concurrency=1)
    retention: FunctionLimits = FunctionLimits(timeout_seconds=50, concurrency=1)
    migrate: FunctionLimits = FunctionLimits(timeout_seconds=600, concurrency=1, connections=2)
    slow_concurrency: int = FOLLOWS
    """Of delivery's copies, those for slow receivers: endpoints that took over 2 s, or timed out, in the last minute.
    They never take a copy from the quick ones."""
    reserve_api_concurrency: bool = False
    """Reserved concurrency of the API's functions, which is also their limit. A new account cannot reserve any."""

    http_timeout_seconds: float = FOLLOWS
    http_connect_timeout_seconds: float = FOLLOWS
    lease_seconds: float = FOLLOWS
    redispatch_seconds: float = FOLLOWS
    max_retry_limit: int = FOLLOWS
    """Limit of attempts for subscriptions without their own; the delays are such defaults too."""
    base_delay_seconds: float = FOLLOWS
    max_delay_seconds: float = FOLLOWS
    retry_jitter: float = FOLLOWS
    max_lost_leases: int = FOLLOWS
    disable_after_days: float = FOLLOWS
    """Hours of continuous failure after which a subscription is disabled; 0 for never."""
    retention_days: float | None = None
    """Days for which ended deliveries are kept; None for ever. The next three: dead letters, payloads, events."""
    dead_letter_days: float | None = None
    payload_days: float | None = None
    event_days: float | None = None
    payload_max_bytes: int = FOLLOWS
    unknown_event_types: Literal["accept", "reject"] = FOLLOWS
    intake_event_type: str = FOLLOWS
    """How messages of the queue `intake` become events: docs/intake.md, also for the next three."""
    intake_tenant: str | None = None
    intake_ordering_key: str | None = None
    intake_attributes: str | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    latency: Latency = Latency.LOW
    """Sizes of batches, and how long messages are gathered for one: shared/hooksaga/aws/latency.py."""
    tracing: bool = False
    """X-Ray traces of the gateway and the functions. AWS samples one request a second of each, and 5 % of the rest."""
    receives: int = 10
    """Number of receives before a message goes to the redrive queue. The sweeps do its work anyway."""
    intake_receives: int = 100
    """The same for `intake`, whose messages no sweep replaces: five hours of an unavailable database."""

    nat: Nat = Nat.INSTANCE
    zones: int = 2
    address_range: str = "10.20.0.0/16"
    """Address range of the VPC. Change it to join the VPC to another network."""
    endpoint_zones: int = 1
    """Number of zones with endpoints of SQS and Secrets Manager; each zone costs the same again."""
    nat_zones: int = 1
    """Number of zones with a NAT gateway and an address of its own. Without one, a zone uses that of another."""
    receiver_ports: tuple[int, ...] = (443,)
    """Ports of callback URLs. The security groups follow."""
    egress_allow: tuple[str, ...] = ()
    """Networks that may be called although they are not public. The VPC needs a route to them."""
    ca_file: Path | None = None
    """PEM file of certificate authorities of receivers, besides the public ones. A layer takes it to the functions."""
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    api: ApiSettings = field(default_factory=ApiSettings)

    log_days: int = 14
    alarm_mail: str | None = None
    runbook_url: str = "docs/operations/alarms.md"

    def __post_init__(self) -> None:
        problems = list[str]()
        try:
            self._follow()
        except InvalidSettings as error:
            problems += str(error).splitlines()
        else:
            problems += problems_of(self)
        problems += limit_problems(self)
        if problems:
            raise InvalidDeployment("\n".join(f"{self.name}: {problem}" for problem in problems))

    def _follow(self) -> None:
        """Derive the fields that are not given, as functions would at their start.

        Raises InvalidSettings when the functions would not start.
        """
        self._set_missing(delivery=delivery_limits(self.lease_seconds))
        timeout = self.delivery.timeout_seconds
        self._set_missing(
            slow_concurrency=max(2, min(4, self.delivery.concurrency - 2)),
            lease_seconds=max(_DEFAULTS["lease_seconds"], timeout + LEASE_MARGIN_SECONDS),
        )
        sent_again = max(_DEFAULTS["redispatch_seconds"], 2 * self.visibility_seconds("delivery"))
        self._set_missing(redispatch_seconds=sent_again)
        given = {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}
        given["egress_allow"] = ",".join(self.egress_allow)
        followed = read_settings(public_url=self.public_url, ca_file=self.ca_file, **given)
        self._set(**{name: getattr(followed, name) for name in SETTINGS if name != "egress_allow"})

    def _set_missing(self, **values: Any) -> None:
        self._set(**{name: value for name, value in values.items() if getattr(self, name) is None})

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)  # set during construction, despite `frozen`

    @property
    def prefix(self) -> str:
        """Prefix of the name of every stack, function and queue."""
        return f"hooksaga-{self.name}"

    @property
    def is_local(self) -> bool:
        """Return whether this goes to an emulator: no network, database, proxy or firewall of ours."""
        return self.target == "local"

    @property
    def public_url(self) -> str | None:
        """Return the start of links; None for the API's own address, which AWS chooses."""
        domain = self.api.domain_name
        return self.api.public_url or (f"https://{domain}" if domain else None)

    @property
    def functions(self) -> dict[str, FunctionLimits]:
        """Return the limits of all functions, which are the fields of that type, by name."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, FunctionLimits)}

    @property
    def variables(self) -> dict[str, str]:
        values = {name: getattr(self, name) for name in SETTINGS}
        values["egress_allow"] = ",".join(self.egress_allow) or None
        settings = {f"{PREFIX}{name.upper()}": f"{one}" for name, one in values.items() if one is not None}
        return settings | {f"{PREFIX}LOG_LEVEL": self.log_level}

    def visibility_seconds(self, function: str) -> int:
        """Return the visibility timeout of this function's messages, in seconds; delivery's is longer than a lease.

        A message is invisible from the moment when it joins a batch, so its gathering counts too.
        """
        seconds = VISIBILITY_FACTOR * self.functions[function].timeout_seconds
        seconds = max(seconds, ceil(self.lease_seconds) + 1) if function == "delivery" else seconds
        return seconds + longest_gathering_seconds(self.latency)

    def with_latency(self, level: Latency) -> "Environment":
        """Return the same with another level. Its times for messages are derived anew."""
        return replace(self, latency=level, redispatch_seconds=FOLLOWS)

    def batching(self, queue: str) -> Batching:
        """Return how messages of the queue of this name, as in hooksaga.adapters.queues, are gathered."""
        return LEVELS[self.latency][queue]

    def receives_of(self, queue: str) -> int:
        return self.intake_receives if queue == "intake" else self.receives

    @property
    def connections(self) -> int:
        """Return the open connections of all functions at their limits. A tick runs beside the queue's invocations."""
        ticks = self.router.connections + self.orchestrator.connections
        return ticks + sum(limits.concurrency * limits.connections for limits in self.functions.values())


SETTINGS = tuple(
    one.name for one in fields(Environment) if one.name in Settings.model_fields and one.name != "ca_file"
)
"""Fields that functions read as HOOKSAGA_<NAME>, by the same rules: shared/hooksaga/runtime/settings.py. The file of
`ca_file` has another path there."""

_DEFAULTS: dict[str, Any] = {name: Settings.model_fields[name].default for name in SETTINGS}


ENVIRONMENTS = {
    "dev": Environment(name="dev"),
    "prod": Environment(
        name="prod",
        ingest=FunctionLimits(timeout_seconds=15, concurrency=50, connections=2),
        intake=FunctionLimits(timeout_seconds=30, concurrency=10),
        subscriptions=FunctionLimits(timeout_seconds=28, concurrency=10, connections=2),
        admin=FunctionLimits(timeout_seconds=28, concurrency=10, connections=3),
        router=FunctionLimits(timeout_seconds=50, concurrency=20),
        console=FunctionLimits(timeout_seconds=28, concurrency=20, connections=4),
        orchestrator=FunctionLimits(timeout_seconds=50, concurrency=160, memory_mb=1024),
        delivery=FunctionLimits(timeout_seconds=45, concurrency=340),
        slow_concurrency=20,
        reserve_api_concurrency=True,
        nat=Nat.GATEWAY,
        nat_zones=2,
        endpoint_zones=2,
        database=DatabaseSettings(
            instance_class="m7g.xlarge",
            storage_gb=100,
            storage_limit_gb=10_000,
            multi_az=True,
            backup_days=30,
            keep_when_destroyed=True,
            connection_limit=900,
        ),
        api=ApiSettings(requests_per_second=1500, burst=750, web_firewall=True, access_log=True),
        log_days=90,
    ),
}


def local_environment(lease_seconds: float | None = None) -> Environment:
    """Return the environment of an emulator, or of one machine in SQS mode, whose lease may have been chosen."""
    delivery = delivery_limits(lease_seconds, concurrency=4)
    return Environment(
        name="local", target="local", delivery=delivery, lease_seconds=lease_seconds or FOLLOWS
    )


LOCAL = local_environment()


def environment_named(name: str) -> Environment:
    """Return one of ENVIRONMENTS. Raises InvalidDeployment for an unknown name."""
    try:
        return ENVIRONMENTS[name]
    except KeyError:
        raise InvalidDeployment(
            f"there is no environment {name!r}; there are: {', '.join(ENVIRONMENTS)}"
        ) from None
