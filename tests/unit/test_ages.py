"""Ages as an operator writes them."""

from datetime import timedelta

import pytest

from hooksaga.core.ages import parse_age


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("30d", timedelta(days=30)),
        ("2w", timedelta(days=14)),
        (" 36h ", timedelta(hours=36)),
        ("99999h", timedelta(hours=99_999)),
    ],
)
def test_an_age_is_read(text: str, age: timedelta) -> None:
    assert parse_age(text) == age


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1.5d", "30 d", "30days", "30D", "٣d", "100000d"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must be a number and d, w or h, such as 30d$"):
        parse_age(text)
