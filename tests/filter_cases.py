"""Filters with events that they match and do not match: those that AWS publishes for EventBridge and SNS, and edges.

Patterns of AWS for nested JSON are flattened to attributes.
"""

from typing import Any, NamedTuple


class Case(NamedTuple):
    filter: dict[str, Any]
    attributes: dict[str, Any]
    matches: bool


def _cases(wanted: dict[str, Any], *, yes: list[dict[str, Any]], no: list[dict[str, Any]]) -> list[Case]:
    return [Case(wanted, one, True) for one in yes] + [Case(wanted, one, False) for one in no]


def _of(name: str, patterns: list[Any], *, yes: list[Any], no: list[Any]) -> list[Case]:
    """Values of one attribute; an event without it never matches."""
    wanted = {name: patterns}
    return _cases(wanted, yes=[{name: one} for one in yes], no=[*({name: one} for one in no), {}])


_STATE, _LIMIT, _FILE = "state", "x-limit", "FileName"

EVENTBRIDGE = [
    *_of(
        "time",
        [{"prefix": "2017-10-02"}],
        yes=["2017-10-02T18:43:48Z", "2017-10-02"],
        no=["2017-10-03", 2017],
    ),
    *_of(_FILE, [{"suffix": ".png"}], yes=["a.png", ".png"], no=["a.PNG", "png", "a.png.txt", 1]),
    *_of(_STATE, [{"anything-but": "initializing"}], yes=["running", "", 1, True], no=["initializing"]),
    *_of(_LIMIT, [{"anything-but": 100}], yes=[99, "100", True, 100.5], no=[100, 100.0]),
    *_of(
        _STATE,
        [{"anything-but": ["stopped", "overloaded"]}],
        yes=["running", 7],
        no=["stopped", "overloaded"],
    ),
    *_of(_LIMIT, [{"anything-but": [100, 200, 300]}], yes=[150, "200", False], no=[100, 200, 3e2]),
    *_of(
        _STATE,
        [{"anything-but": {"prefix": "init"}}],
        yes=["running", "Init", 1, False],
        no=["init", "initial"],
    ),
    *_of(_STATE, [{"anything-but": {"prefix": ["init", "error"]}}], yes=["ok", 5], no=["initial", "error-1"]),
    *_of(_FILE, [{"anything-but": {"suffix": ".txt"}}], yes=["a.png", "a.txt.png", 1], no=["a.txt", ".txt"]),
    *_of(_FILE, [{"anything-but": {"suffix": [".txt", ".rtf"]}}], yes=["a.png"], no=["a.txt", "b.rtf"]),
    *_of(
        _STATE,
        [{"anything-but": {"equals-ignore-case": "initializing"}}],
        yes=["running", 1],
        no=["INITIALIZING", "initializing"],
    ),
    *_of(
        _STATE,
        [{"anything-but": {"equals-ignore-case": ["initializing", "stopped"]}}],
        yes=["running"],
        no=["STOPPED", "Initializing"],
    ),
    *_of("c-count", [{"numeric": [">", 0, "<=", 5]}], yes=[1, 5, 0.01, 5.0], no=[0, 5.01, -1, "3", True]),
    *_of("d-count", [{"numeric": ["<", 10]}], yes=[9, -100], no=[10, "9"]),
    *_of(_LIMIT, [{"numeric": ["=", 3.018e2]}], yes=[301.8], no=[301.81, "301.8"]),
    *_of(
        "detail-type",
        [{"equals-ignore-case": "ec2 instance state-change notification"}],
        yes=["EC2 Instance State-change Notification", "ec2 instance state-change notification"],
        no=["EC2 Instance State-change", 1],
    ),
    *_cases({_STATE: [{"exists": True}]}, yes=[{_STATE: ""}, {_STATE: False}], no=[{}, {"other": 1}]),
    *_cases({_STATE: [{"exists": False}]}, yes=[{}, {"other": 1}], no=[{_STATE: ""}, {_STATE: False}]),
    *_cases(
        {
            "time": [{"prefix": "2017-10-02"}],
            "state": [{"anything-but": "initializing"}],
            "c-count": [{"numeric": [">", 0, "<=", 5]}],
            "d-count": [{"numeric": ["<", 10]}],
            "x-limit": [{"anything-but": [100, 200, 300]}],
        },
        yes=[{"time": "2017-10-02", "state": "ok", "c-count": 1, "d-count": 1, "x-limit": 1}],
        no=[
            {"time": "2017-10-02", "state": "ok", "c-count": 1, "d-count": 1, "x-limit": 100},
            {"time": "2017-10-02", "state": "ok", "c-count": 1, "d-count": 1},
        ],
    ),
    *_cases(
        {
            "source": ["aws.cloudwatch"],
            "$or": [
                {"c-count": [{"numeric": [">", 0, "<=", 5]}]},
                {"d-count": [{"numeric": ["<", 10]}], "e": [1]},
                {"x-limit": [{"numeric": ["=", 3.018e2]}]},
            ],
        },
        yes=[
            {"source": "aws.cloudwatch", "c-count": 1},
            {"source": "aws.cloudwatch", "c-count": "many", "x-limit": 301.8},
            {"source": "aws.cloudwatch", "d-count": 1, "e": 1},
        ],
        no=[
            {"source": "aws.cloudwatch"},
            {"source": "aws.cloudwatch", "d-count": 1},
            {"source": "aws.cloudwatch", "c-count": "many"},
            {"c-count": 1},
        ],
    ),
]

SNS = [
    *_cases(
        {
            "store": ["example_corp"],
            "event": [{"anything-but": "order_cancelled"}],
            "customer_interests": ["rugby", "football", "baseball"],
            "price_usd": [{"numeric": [">=", 100]}],
        },
        yes=[
            {
                "store": "example_corp",
                "event": "order_placed",
                "customer_interests": "rugby",
                "price_usd": 210.75,
            }
        ],
        no=[
            {
                "store": "example_corp",
                "event": "order_cancelled",
                "customer_interests": "rugby",
                "price_usd": 210,
            },
            {
                "store": "example_corp",
                "event": "order_placed",
                "customer_interests": "tennis",
                "price_usd": 210,
            },
            {
                "store": "example_corp",
                "event": "order_placed",
                "customer_interests": "rugby",
                "price_usd": 99,
            },
            {"event": "order_placed", "customer_interests": "rugby", "price_usd": 210},
        ],
    ),
    *_of(
        "interests", ["rugby", {"anything-but": {"prefix": "rug"}}], yes=["rugby", "tennis", 1], no=["rugged"]
    ),
    *_of(
        "event", [{"anything-but": {"prefix": "order-"}}], yes=["data-entry", "order_number"], no=["order-1"]
    ),
    *_of("interests", [{"equals-ignore-case": "tennis"}], yes=["TENNIS", "Tennis"], no=["tennis "]),
    *_of("interests", [{"prefix": "bas"}], yes=["baseball", "basketball"], no=["rugby"]),
    *_of("interests", [{"suffix": "ball"}], yes=["baseball", "basketball"], no=["rugby", "balls"]),
    *_of("price_usd", [{"numeric": ["=", 301.5]}], yes=[301.5], no=[301]),
    *_of("price_usd", [{"numeric": [">", 0, "<=", 150]}], yes=[1, 150], no=[0, 150.01]),
    *_of("key_b", ["value_one", {"exists": True}], yes=["value_one", "x"], no=[]),
]

EDGES = [
    *_of("a", [1], yes=[1, 1.0], no=["1", True, 2]),
    *_of("a", ["1"], yes=["1"], no=[1]),
    *_of("a", [True], yes=[True], no=["true", 1, False]),
    *_of("a", [False], yes=[False], no=["", 0, "false"]),
    *_of("a", [""], yes=[""], no=[" ", 0]),
    *_of(
        "a",
        ['q"uote', "back\\slash", "$.b", "(x) || true", "\u2028", "訂單 😀", "'"],
        yes=['q"uote', "back\\slash", "$.b", "(x) || true", "\u2028", "訂單 😀", "'"],
        no=["quote", "訂單"],
    ),
    *_of("a", [{"suffix": "😀é"}], yes=["x😀é"], no=["é😀", "😀e"]),
    *_of("a", [{"suffix": ".*"}], yes=["a.*"], no=["a.b"]),
    *_of("a", [{"equals-ignore-case": "\u00c4b"}], yes=["\u00c4B"], no=["\u00e4b"]),
    *_of("a", [{"equals-ignore-case": "K"}], yes=["k"], no=["\u212a"]),
    *_of("a", [820982911946154508], yes=[820982911946154508], no=[820982911946154509]),
    *_of("a", [{"numeric": [">", 5, "<", 3]}], yes=[], no=[4, 6]),
    *_of("a", [{"numeric": [">", 5]}], yes=[5.01], no=[5]),
    *_of("a", [{"numeric": [">=", 5]}], yes=[5, 5.0], no=[4.99]),
    *_of("a", [{"numeric": ["<", 5]}], yes=[4.99], no=[5]),
    *_of("a", [{"numeric": ["<=", 5]}], yes=[5, 5.0], no=[5.01]),
    *_of("a.b", ["x"], yes=["x"], no=["y"]),
    *_cases({"a": [{"exists": False}, "x"]}, yes=[{}, {"a": "x"}], no=[{"a": "y"}]),
    *_cases({"a": [{"exists": False}], "b": [1]}, yes=[{"b": 1}], no=[{"a": 1, "b": 1}, {}]),
]

CASES = [*EVENTBRIDGE, *SNS, *EDGES]

BEYOND_SCHEMAS: list[tuple[dict[str, Any], str]] = [
    ({"a": ["\ud800"]}, ".a[0]"),
    ({"a": list(range(101))}, ""),
    ({"a": [{"anything-but": list(range(50))}], "b": list(range(51))}, ""),
    ({"a": ["x" * 200] * 21}, ""),
]
"""Those of BAD that break a rule which no JSON Schema expresses."""

BAD: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    ({"a": "x"}, ".a"),
    ({"a": []}, ".a"),
    ({"a": {"prefix": "x"}}, ".a"),
    ({"a b": ["x"]}, ".a b"),
    ({"a": [None]}, ".a[0]"),
    ({"a": ["x", ["y"]]}, ".a[1]"),
    ({"a": [{}]}, ".a[0]"),
    ({"a": [{"prefix": "x", "suffix": "y"}]}, ".a[0]"),
    ({"a": [{"wildcard": "x*"}]}, ".a[0].wildcard"),
    ({"a": [{"cidr": "10.0.0.0/8"}]}, ".a[0].cidr"),
    ({"a": [{"prefix": 1}]}, ".a[0].prefix"),
    ({"a": [{"prefix": ""}]}, ".a[0].prefix"),
    ({"a": [{"suffix": ["x"]}]}, ".a[0].suffix"),
    ({"a": [{"prefix": {"equals-ignore-case": "x"}}]}, ".a[0].prefix"),
    ({"a": [{"exists": "true"}]}, ".a[0].exists"),
    ({"a": [{"exists": 1}]}, ".a[0].exists"),
    ({"order_id": [{"numeric": []}]}, ".order_id[0].numeric"),
    ({"order_id": [{"numeric": 5}]}, ".order_id[0].numeric"),
    ({"order_id": [{"numeric": [">", "5"]}]}, ".order_id[0].numeric[1]"),
    ({"order_id": [{"numeric": [">", True]}]}, ".order_id[0].numeric[1]"),
    ({"order_id": [{"numeric": ["!=", 5]}]}, ".order_id[0].numeric[0]"),
    ({"order_id": [{"numeric": [">", 1, "<"]}]}, ".order_id[0].numeric"),
    ({"order_id": [{"numeric": ["<", 5, ">", 1]}]}, ".order_id[0].numeric"),
    ({"order_id": [{"numeric": ["=", 5, "=", 5]}]}, ".order_id[0].numeric"),
    ({"a": [{"anything-but": []}]}, ".a[0].anything-but"),
    ({"a": [{"anything-but": None}]}, ".a[0].anything-but"),
    ({"a": [{"anything-but": {"prefix": 1}}]}, ".a[0].anything-but.prefix"),
    ({"a": [{"anything-but": [None]}]}, ".a[0].anything-but[0]"),
    ({"a": [{"anything-but": ["x", {"prefix": "y"}]}]}, ".a[0].anything-but[1]"),
    ({"a": [{"anything-but": {"exists": True}}]}, ".a[0].anything-but"),
    ({"a": [{"anything-but": {"prefix": []}}]}, ".a[0].anything-but.prefix"),
    ({"a": [{"anything-but": {"suffix": ["x", 1]}}]}, ".a[0].anything-but.suffix[1]"),
    ({"a": ["x" * 201]}, ".a[0]"),
    ({"a": ["x\ny"]}, ".a[0]"),
    ({"a": [1e31]}, ".a[0]"),
    ({"a": [float("inf")]}, ".a[0]"),
    ({"a": [10**400]}, ".a[0]"),
    ({"$or": [{"a": [1]}]}, ".$or"),
    ({"$or": {"a": [1]}}, ".$or"),
    ({"$or": [{"a": [1]}, "b"]}, ".$or[1]"),
    ({"$or": [{"a": [1]}, {}]}, ".$or[1]"),
    ({"$or": [{"a": [1]}, {"b": [{"numeric": [">"]}]}]}, ".$or[1].b[0].numeric"),
    ({"$or": [{"a": [1]}, {"$or": [{"a": [1]}, {"a": [2]}]}]}, ".$or[1].$or"),
    ({f"a{number}": [1] for number in range(11)}, ""),
    *BEYOND_SCHEMAS,
]
"""Filters with the place that the error names, after `filter`."""
