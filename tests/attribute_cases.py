"""Attributes within the rules and against them, for the API and for the database."""

import json

GOOD = [
    "{}",
    json.dumps({f"a{number}": number for number in range(20)}),
    json.dumps({"x" * 64: "", "A-z_0.9": "x" * 200}),
    json.dumps({"text": "訂單 😀" * 40, "quotes": "\"' \\ %", "yes": True, "no": False}),
    '{"a": 1.10, "b": -0.0, "c": 1e30, "d": -1E+30, "e": 5e-324, "f": 820982911946154508, "g": 0e5}',
    f'{{"a": 0.{"1" * 400}, "b": {"9" * 30}.{"9" * 400}}}',
]

BAD = {
    "[]": "attributes",
    '"a"': "attributes",
    "7": "attributes",
    json.dumps({f"a{number}": number for number in range(21)}): "attributes",
    '{"": 1}': "attributes.",
    '{"a b": 1}': "attributes.a b",
    '{"\u00e4": 1}': "attributes.\u00e4",
    json.dumps({"x" * 65: 1}): f"attributes.{'x' * 65}",
    '{"fine": 1, "a": null}': "attributes.a",
    '{"a": []}': "attributes.a",
    '{"a": ["x"]}': "attributes.a",
    '{"a": {"b": 1}}': "attributes.a",
    json.dumps({"a": "x" * 201}): "attributes.a",
    '{"a": "x\\ny"}': "attributes.a",
    '{"a": "\\u007f"}': "attributes.a",
    '{"a": 1000000000000000000000000000001}': "attributes.a",
    '{"a": 1.1e30}': "attributes.a",
    '{"a": -1e31}': "attributes.a",
    '{"a": 1e400}': "attributes.a",
    '{"a": 1e-401}': "attributes.a",
}
"""By JSON text: the place that the error names."""

ONLY_JSON = {
    '{"a": "\\u0000"}': "attributes.a",
    '{"a": 1e-99999999999999999999}': "attributes.a",
    '{"a": 1e999999}': "attributes.a",
    '{"a": 0e99999999999}': "attributes.a",
}
"""Texts that the database does not read as jsonb at all."""
