"""A row that the database refuses stays where it is, and stops neither its neighbours nor the stages behind it."""

from psycopg import sql

from tests.e2e.world import World


def test_a_delivery_that_cannot_be_started_stops_no_other_and_no_retry(world: World) -> None:
    flaky, well, sick = world.subscribe("flaky/1"), world.subscribe(), world.subscribe()
    jobs = world.running.database
    jobs.execute(
        sql.SQL(
            "ALTER TABLE webhook_delivery_jobs ADD CONSTRAINT broken CHECK (subscription_id <> {}) NOT VALID"
        ).format(sick.id)
    )
    refused = world.post(sick)
    world.saga_in(refused, "Pending")
    retried, others = world.post(flaky), [world.post(well) for _ in range(5)]
    assert {world.ended(event_id)["status"] for event_id in [retried, *others]} == {"Completed"}
    assert world.saga_in(refused, "Pending")["attempt_count"] == 0
    jobs.execute("ALTER TABLE webhook_delivery_jobs DROP CONSTRAINT broken")
    assert world.ended(refused)["status"] == "Completed"
