"""The price of what the run used, by counts of CloudWatch, beside the formula of `hooksaga cost` for the same time."""

from collections.abc import Sequence

from hooksaga.adapters.queues import Queue
from hooksaga.aws.deployment import Environment
from hooksaga.cost.bill import MILLION, Bill, bill_of
from hooksaga.cost.sources import read_inputs, read_prices
from hooksaga.cost.work import HOURS, Load
from infra.proof.load import Accepted
from infra.proof.proof import Proof
from infra.proof.receiver import PATHS
from infra.proof.results import Result
from infra.proof.steps.metrics import total


def measure_bill(proof: Proof, result: Result, accepted: Sequence[Accepted]) -> None:
    """Compare Lambda, SQS and API Gateway, the lines that traffic makes. CloudWatch is some minutes behind."""
    hours = (accepted[-1].accepted_at - accepted[0].sent_at) / 3600
    formula = formula_of(len(accepted), hours, proof.place.env)
    measured = {
        "Lambda": (_functions(proof), formula.functions),
        "SQS": (_queues(proof), formula.queues),
        "API Gateway": (_api(proof), formula.api),
    }
    for name, (dollars, expected) in measured.items():
        if dollars is None:
            result.unavailable.append(f"The bill of {name}: CloudWatch has no counts of it.")
        else:
            shown = f"${dollars:.4f}; formula ${expected * hours / HOURS:.4f}"
            result.figures[f"{name} in {hours * 60:.0f} minutes"] = shown


def formula_of(events: int, hours: float, env: Environment) -> Bill:
    """Return the monthly bill if the load went on for a month."""
    load = Load(events * HOURS / hours, len(PATHS), failure_rate=0.03, days=1)
    return bill_of(load, env, read_prices(), read_inputs())


def _functions(proof: Proof) -> float | None:
    """The functions of hooksaga; the receiver is not theirs."""
    prices, dollars = read_prices().lambda_arm64, 0.0
    seen = False
    for name, limits in proof.place.env.functions.items():
        dimensions = {"FunctionName": f"{proof.place.prefix}-{name}"}
        runs = total(proof, "AWS/Lambda", "Invocations", dimensions)
        milliseconds = total(proof, "AWS/Lambda", "Duration", dimensions)
        if runs is None or milliseconds is None:
            continue
        seen = True
        dollars += runs / MILLION * prices.million_requests
        dollars += milliseconds / 1000 * limits.memory_mb / 1024 * prices.gb_second
    return dollars if seen else None


def _queues(proof: Proof) -> float | None:
    """Sends, receives with and without messages, and deletes. A receive or delete of a batch is one request, so the
    true count is lower."""
    metrics = (
        "NumberOfMessagesSent",
        "NumberOfMessagesReceived",
        "NumberOfEmptyReceives",
        "NumberOfMessagesDeleted",
    )
    counts = [
        total(proof, "AWS/SQS", metric, {"QueueName": f"{proof.place.prefix}-{queue.dashed}"})
        for queue in Queue
        for metric in metrics
    ]
    known = [count for count in counts if count is not None]
    return sum(known) / MILLION * read_prices().sqs_standard.million_requests if known else None


def _api(proof: Proof) -> float | None:
    count = total(proof, "AWS/ApiGateway", "Count", {"ApiName": proof.place.prefix})
    return None if count is None else count / MILLION * read_prices().api_gateway_rest.million_requests
