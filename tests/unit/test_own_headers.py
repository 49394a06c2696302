"""The stored form of a subscription's own headers: sealed values, names to be read, and changes one by one."""

import json
from typing import Any

import pytest

from hooksaga.adapters.secret_box import SecretBox, UnreadableSecret, generate_key
from hooksaga.core.errors import InvalidInput
from hooksaga.stages.own_headers import (
    change_headers,
    has_clear_values,
    open_headers,
    reseal_headers,
    seal_headers,
    shown_headers,
)

OLD, NEW = generate_key(), generate_key()
BOX = SecretBox([OLD])


def test_what_is_sealed_is_opened_and_never_shown() -> None:
    stored = seal_headers(BOX, {"x-a": "hush", "authorization": "Bearer hush"})
    assert "hush" not in json.dumps(stored)
    assert open_headers(BOX, stored) == {"x-a": "hush", "authorization": "Bearer hush"}
    assert shown_headers(stored) == {"x-a": "***", "authorization": "***"}
    assert not has_clear_values(stored)


def test_neither_a_secret_nor_a_header_is_taken_for_the_other() -> None:
    stored = seal_headers(BOX, {"x-a": "hush"})
    with pytest.raises(UnreadableSecret):
        BOX.open(stored["x-a"]["sealed"])
    with pytest.raises(UnreadableSecret):
        open_headers(BOX, {"x-a": {"sealed": BOX.seal("whsec_x")}})


def test_a_value_in_clear_is_sent_as_it_is_until_it_is_sealed() -> None:
    stored = {"X-A": "clear", **seal_headers(BOX, {"x-b": "hush"})}
    assert open_headers(BOX, stored) == {"x-a": "clear", "x-b": "hush"}
    assert shown_headers(stored) == {"X-A": "***", "x-b": "***"}
    sealed = reseal_headers(BOX, stored, only_clear=True)
    assert sealed is not None
    assert sealed["x-b"] == stored["x-b"]
    assert "clear" not in json.dumps(sealed)
    assert open_headers(BOX, sealed) == {"x-a": "clear", "x-b": "hush"}
    assert reseal_headers(BOX, sealed, only_clear=True) is None


def test_a_rotation_renews_what_an_older_key_sealed_and_nothing_else() -> None:
    both, stored = SecretBox([NEW, OLD]), seal_headers(BOX, {"x-a": "hush"})
    assert reseal_headers(both, stored, only_clear=True) is None
    renewed = reseal_headers(both, stored, only_clear=False)
    assert renewed is not None
    assert open_headers(SecretBox([NEW]), renewed) == {"x-a": "hush"}
    assert reseal_headers(both, renewed, only_clear=False) is None
    with pytest.raises(UnreadableSecret):
        reseal_headers(SecretBox([NEW]), stored, only_clear=False)


FORMS: list[Any] = [
    [],
    "x",
    1,
    None,
    {"x-a": 1},
    {"x-a": None},
    {"x-a": {}},
    {"x-a": {"sealed": 1}},
    {"x-a": ["x"]},
]


@pytest.mark.parametrize("stored", FORMS, ids=str)
def test_another_form_is_refused(stored: Any) -> None:
    with pytest.raises(ValueError, match="stored header"):
        open_headers(BOX, stored)
    with pytest.raises(ValueError, match="stored header"):
        reseal_headers(BOX, stored, only_clear=False)


def test_a_change_needs_no_key_for_what_stays() -> None:
    """One header is set although the key of the other is lost."""
    stored = {"x-lost": {"sealed": "gAAAAA"}, **seal_headers(BOX, {"x-b": "hush"})}
    changed = change_headers(BOX, stored, {"x-a": "1", "x-b": None})
    assert changed["x-lost"] == stored["x-lost"]
    assert set(changed) == {"x-lost", "x-a"}
    assert open_headers(BOX, {"x-a": changed["x-a"]}) == {"x-a": "1"}


def test_a_change_has_its_bounds() -> None:
    twenty = seal_headers(BOX, {f"x-{n}": "1" for n in range(20)})
    assert len(change_headers(BOX, twenty, {"x-0": "2", "x-20": "1", "x-1": None})) == 20
    for change, rule in (({"x-20": "1"}, "at most 20 headers"), ({"x-20": "***"}, "x-20 has no value")):
        with pytest.raises(InvalidInput, match=rule):
            change_headers(BOX, twenty, change)
    assert change_headers(BOX, twenty, None) == {}


def test_a_purpose_has_one_box_so_that_it_remembers_what_it_has_opened() -> None:
    """Deriving keys and opening at each delivery would cost more than the delivery."""
    assert BOX.for_purpose("a") is BOX.for_purpose("a")
    assert BOX.for_purpose("a") is not BOX.for_purpose("b")
    stored = json.loads(json.dumps(seal_headers(BOX, {"x-a": "hush"})))
    own = BOX.for_purpose("subscription headers")
    before = own._open_cached.cache_info()
    for _ in range(3):
        open_headers(BOX, stored)
    after = own._open_cached.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 2)
