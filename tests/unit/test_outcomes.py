"""Every error code has one of a few classes."""

import pytest

from hooksaga.core.outcomes import ErrorClass, ErrorCode, error_class_of, http_error, subscriber_error_code


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ErrorClass.HTTP_4XX),
        (429, ErrorClass.HTTP_4XX),
        (499, ErrorClass.HTTP_4XX),
        (500, ErrorClass.HTTP_5XX),
        (599, ErrorClass.HTTP_5XX),
        (301, ErrorClass.OTHER),
        (101, ErrorClass.OTHER),
        (999, ErrorClass.OTHER),
    ],
)
def test_a_status_has_its_hundred(status: int, kind: ErrorClass) -> None:
    assert error_class_of(http_error(status)) is kind


def test_every_word_has_the_kind_that_it_begins_with() -> None:
    kinds = {word: error_class_of(word) for word in ErrorCode}
    for word in ErrorCode:
        first = word.split("_")[0]
        if first in {"timeout", "dns", "tls", "connection"}:
            assert kinds[word] == first
    assert kinds[ErrorCode.ADDRESS_BLOCKED] is ErrorClass.BLOCKED
    assert {word for word, kind in kinds.items() if kind is ErrorClass.OTHER} == {
        ErrorCode.INVALID_URL,
        ErrorCode.PROTOCOL_ERROR,
        ErrorCode.LEASE_EXPIRED,
        ErrorCode.SUBSCRIPTION_INACTIVE,
        ErrorCode.CANCELED,
        ErrorCode.DISCARDED,
        ErrorCode.EXPIRED,
        ErrorCode.ERASED,
        ErrorCode.INTERNAL_ERROR,
    }


def test_words_of_another_version_are_other() -> None:
    assert error_class_of("moon_phase") is ErrorClass.OTHER


@pytest.mark.parametrize(
    ("error_code", "shown"),
    [
        ("address_blocked", "no_public_address"),
        ("dns_nxdomain", "no_public_address"),
        ("dns_error", "no_public_address"),
        ("connection_refused", "connection_refused"),
        ("http_500", "http_500"),
        (None, None),
    ],
)
def test_a_subscriber_never_learns_which_names_this_network_has(
    error_code: str | None, shown: str | None
) -> None:
    assert subscriber_error_code(error_code) == shown
