"""How many jobs a lane may claim, by what their payloads take."""

import pytest

from hooksaga.runtime.settings import Settings
from hooksaga.worker import payload_memory
from hooksaga.worker.payload_memory import MAX_CHARACTERS, PayloadMemory

LARGEST = 1000


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_memory, "MAX_CHARACTERS", 10 * LARGEST)


def test_at_first_each_is_as_large_as_may_be() -> None:
    assert PayloadMemory(LARGEST).room == 10


def test_small_ones_leave_room_for_more_and_large_ones_for_fewer_again() -> None:
    memory = PayloadMemory(LARGEST)
    for _ in range(8):
        memory.take([10])
        memory.give_back(10)
    assert memory.room == 1000
    memory.take([LARGEST // 2])
    assert memory.room == 19
    memory.give_back(LARGEST // 2)
    assert memory.room == 20


def test_when_it_is_full_nothing_more_is_claimed_until_one_has_ended() -> None:
    memory = PayloadMemory(LARGEST)
    memory.take([LARGEST] * 10)
    assert memory.is_full
    memory.give_back(LARGEST)
    assert (memory.is_full, memory.room) == (False, 1)


def test_one_that_is_larger_than_all_memory_is_claimed_alone() -> None:
    """Nothing would ever send it otherwise."""
    memory = PayloadMemory(LARGEST)
    memory.take([100 * LARGEST])
    assert memory.is_full
    memory.give_back(100 * LARGEST)
    assert (memory.is_full, memory.room) == (False, 1)


def test_half_of_the_places_of_one_machine_have_room_for_payloads_of_the_largest_size() -> None:
    defaults = {name: field.default for name, field in Settings.model_fields.items()}
    assert MAX_CHARACTERS // defaults["payload_max_bytes"] >= defaults["concurrency"] // 2
