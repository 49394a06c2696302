"""The rules of CloudWatch's embedded metric format, and ours on top of them."""

from typing import Any

from hooksaga.aws.emf import NAMESPACE
from hooksaga.core.outcomes import ErrorClass
from hooksaga.runtime.metrics import Metric

UNITS = {"Count", "Milliseconds", "Seconds"}
MAX_VALUES = 100


def check_emf(line: dict[str, Any]) -> None:
    """Every name that the directive gives is in the line, and nothing there could tell one event from another."""
    assert isinstance(line["_aws"]["Timestamp"], int)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == NAMESPACE
    for names in directive["Dimensions"]:
        assert set(names) <= {"service", "error_class"}
        assert all(isinstance(line[name], str) and line[name] for name in names)
    assert line.get("error_class") in {None, *ErrorClass}
    measured = {one["Name"] for one in directive["Metrics"]}
    assert measured
    assert measured <= set(Metric)
    assert {one["Unit"] for one in directive["Metrics"]} <= UNITS
    for name in measured:
        values = line[name] if isinstance(line[name], list) else [line[name]]
        assert 1 <= len(values) <= MAX_VALUES
        assert all(isinstance(value, int | float) and value >= 0 for value in values)
    assert set(line) == {"_aws", "service", *measured} | ({"error_class"} & set(line))
