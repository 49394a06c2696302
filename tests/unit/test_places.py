"""Places for POSTs: who holds them, and how many more each subscription may have."""

from hooksaga.worker.places import LanePlaces, WorkerPlaces


def test_a_subscription_may_have_half_of_what_stays_free() -> None:
    places = LanePlaces(40, least=2)
    assert places.left_for(1) == 20
    places.start([1] * 20)
    assert (places.left_for(1), places.left_for(2)) == (0, 10)
    places.claim([1] * 15, is_empty=False)
    for _ in range(15):
        places.begin(1)
    assert (places.free, places.unclaimed, places.left_for(1), places.left_for(2)) == (25, 5, 0, 10)


def test_with_every_place_taken_each_may_still_have_its_least() -> None:
    places = LanePlaces(10, least=2)
    places.start([1] * 14)
    assert (places.left_for(1), places.left_for(2)) == (0, 2)
    places.start([2])
    assert places.left_for(2) == 1


def test_a_place_is_free_once_the_post_has_ended() -> None:
    places = LanePlaces(4)
    places.begin(1)
    places.begin(1)
    assert places.left_for(1) == 0
    places.end(1)
    places.end(1)
    assert (places.free, places.left_for(1)) == (4, 2)
    assert places.freed.is_set()


def test_an_empty_queue_ends_every_count_of_jobs_that_wait() -> None:
    """Another process may have claimed them."""
    places = LanePlaces(4)
    places.start([1, 1, 2])
    places.claim([1, 7], is_empty=False)
    assert places.unclaimed == 2
    places.claim([], is_empty=True)
    assert (places.unclaimed, places.left_for(1)) == (0, 2)


def test_a_late_post_makes_its_subscription_slow() -> None:
    places = WorkerPlaces(30, 10)
    assert not places.is_late(1)
    places.note_late(1)
    assert places.is_late(1)
    assert not places.is_late(2)
    assert (places.left_for(1, slow=False), places.left_for(1, slow=True)) == (15, 5)
