"""Places for POSTs: who holds them, and how many more each subscription may have."""

from hooksaga.worker.places import LanePlaces, WorkerPlaces


def jobs(first: int, many: int, subscription_id: int = 1) -> dict[int, int]:
    return dict.fromkeys(range(first, first + many), subscription_id)


def test_a_subscription_may_have_half_of_what_stays_free() -> None:
    places = LanePlaces(40, least=2)
    assert places.left_for(1) == 20
    places.start(jobs(100, 20))
    assert (places.left_for(1), places.left_for(2)) == (0, 10)
    places.claim(range(100, 115), jobs(100, 15))
    assert (places.free, places.unclaimed, places.left_for(1), places.left_for(2)) == (25, 5, 0, 10)


def test_with_every_place_taken_each_may_still_have_its_least() -> None:
    places = LanePlaces(10, least=2)
    places.start(jobs(100, 14))
    assert (places.left_for(1), places.left_for(2)) == (0, 2)
    places.start({200: 2})
    assert places.left_for(2) == 1


def test_a_subscription_that_holds_places_gets_more_when_a_quarter_of_its_share_is_free() -> None:
    places = WorkerPlaces(40, 10)
    places.quick.start(jobs(100, 20))
    assert not places.any_for(1)
    places.quick.claim(range(100, 120), jobs(100, 20))
    for _ in range(4):
        places.quick.end(1)
    assert (places.left_for(1, slow=False), places.any_for(1)) == (4, False)
    places.quick.end(1)
    assert (places.left_for(1, slow=False), places.any_for(1)) == (5, True)
    assert places.any_for(2)


def test_a_place_is_free_once_the_post_has_ended() -> None:
    places = LanePlaces(4)
    places.claim([], jobs(100, 2))
    assert places.left_for(1) == 0
    places.end(1)
    places.end(1)
    assert (places.free, places.left_for(1)) == (4, 2)
    assert places.freed.is_set()


def test_jobs_are_claimed_in_the_order_of_their_starts() -> None:
    places = LanePlaces(40)
    places.start({300: 1, 100: 2})
    places.start({200: 3})
    assert (places.next_jobs(2), places.next_jobs(9)) == ([300, 100], [300, 100, 200])


def test_a_job_that_another_process_has_claimed_holds_no_place() -> None:
    places = LanePlaces(4)
    places.start({100: 1, 101: 1, 102: 2})
    places.claim([100, 101], {101: 1})
    assert (places.next_jobs(9), places.free, places.held_by(1)) == ([102], 3, 1)


def test_a_job_that_a_look_has_found_is_not_asked_for_again() -> None:
    places = LanePlaces(4)
    places.start({100: 1})
    places.claim([], {7: 5, 100: 1})
    assert (places.next_jobs(9), places.free, places.held_by(1), places.held_by(5)) == ([], 2, 1, 1)


def test_a_late_post_makes_its_subscription_slow() -> None:
    places = WorkerPlaces(30, 10)
    assert not places.is_late(1)
    places.note_late(1)
    assert places.is_late(1)
    assert not places.is_late(2)
    assert (places.left_for(1, slow=False), places.left_for(1, slow=True)) == (15, 5)
