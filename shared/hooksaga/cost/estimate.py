"""An estimate of one load: the database that carries it, what the settings carry, and the bill."""

from dataclasses import dataclass

from hooksaga.aws.deployment import Environment
from hooksaga.cost.bill import Bill, bill_of
from hooksaga.cost.capacity import Capacity, capacity_of, fitting
from hooksaga.cost.sources import Inputs, Prices
from hooksaga.cost.work import Load


@dataclass(frozen=True, slots=True)
class Estimate:
    """`env` has the database that carries the load; `capacity` is that of `env` with its other settings."""

    load: Load
    env: Environment
    capacity: Capacity
    bill: Bill

    @property
    def peak_per_second(self) -> float:
        return self.load.events_per_second * self.load.peak

    @property
    def is_carried(self) -> bool:
        return self.peak_per_second <= self.capacity.events_per_second


def estimate_of(load: Load, env: Environment, prices: Prices, inputs: Inputs) -> Estimate:
    """Raises TooMuch if no database carries the load, KeyError for an instance class without a price."""
    chosen = fitting(load, env, prices, inputs)
    return Estimate(
        load=load,
        env=chosen,
        capacity=capacity_of(load, chosen, prices, inputs),
        bill=bill_of(load, chosen, prices, inputs),
    )
