"""Lists as CSV and NDJSON: whole, page by page, and equal to the pages of JSON."""

import csv
import http.client
import io
import json
from typing import Any

import pytest

from hooksaga.api import exports
from hooksaga.api.app import ALL_ROUTES
from hooksaga.api.asgi import build_app
from hooksaga.api.routes import operations
from hooksaga.aws.gateway import answer_gateway
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.operations.list_dead_letters import DeadLetterPage
from tests.api.http_client import Answer, Api, assert_problem
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe

LISTS = ("subscriptions", "events", "attempts", "dead-letters", "bulk-operations")
EVENTS = 7


@pytest.fixture(scope="module")
def mine(running: RunningSystem, refusing_url: str) -> Api:
    """A tenant with seven dead letters, requeued by three operations."""
    api = running.api.with_key(running.new_key(tenant_id=new_name("export")))
    event_type = new_name("exported")
    subscription = subscribe(running, api, event_type, refusing_url, description="=1+1")["id"]
    for _ in range(EVENTS):
        post(api, event_type)
    dead_letters(running, subscription, EVENTS)
    for code in ("http_418", "http_500", "http_503"):
        api.good("POST", "/v1/bulk-operations", {"kind": "requeue", "filter": {"error_code": code}})
    open_ones = "/v1/bulk-operations?status=Running"
    wait_until(lambda: not api.good("GET", open_ones)["items"], "the operations have ended")
    return api


def exported(api: Api, name: str, query: str) -> Answer:
    answer = api.get(f"/v1/{name}?{query}")
    assert answer.status == 200, answer
    return answer


def lines_of(answer: Answer) -> list[dict[str, Any]]:
    text = answer.body.decode()
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", LISTS)
def test_an_export_holds_what_the_pages_hold(mine: Api, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over several pages, each read by itself."""
    monkeypatch.setattr(exports, "MAX_LIMIT", 2)
    items = mine.good("GET", f"/v1/{name}")["items"]
    assert len(items) >= 1
    as_lines = exported(mine, name, "format=ndjson")
    assert [{**line, "health": None} for line in lines_of(as_lines)] == [
        {**item, "health": None} for item in items
    ]
    assert as_lines.headers["content-type"] == "application/x-ndjson"
    as_csv = exported(mine, name, "format=csv")
    assert as_csv.headers["content-type"].startswith("text/csv; charset=utf-8")
    assert as_csv.headers["content-disposition"] == f'attachment; filename="{name}.csv"'
    rows = list(csv.DictReader(io.StringIO(as_csv.body.decode())))
    assert [list(row) for row in rows] == [list(item) for item in items]
    assert [row["id"] for row in rows] == [str(item["id"]) for item in items]
    for answer in (as_lines, as_csv):
        assert exports.NEXT_HEADER not in answer.headers


def test_the_lists_of_all_tenants_are_exported_too(running: RunningSystem) -> None:
    api, name = running.api, new_name("listed")
    api.good("PUT", f"/v1/event-types/{name}", {"description": "one"})
    api.good("POST", "/v1/erasures", {"tenant_id": name, "reason": "a test"})
    key_of = {"event-types": "name", "erasures": "id"}
    for listed, key in key_of.items():
        items = api.good("GET", f"/v1/{listed}")["items"]
        lines = lines_of(exported(api, listed, "format=ndjson"))
        assert items
        assert [line[key] for line in lines] == [item[key] for item in items]


def test_a_cell_is_no_formula_and_null_is_empty(mine: Api) -> None:
    (row,) = csv.DictReader(io.StringIO(exported(mine, "subscriptions", "format=csv").body.decode()))
    assert row["description"] == "'=1+1"
    assert (row["pending_callback_url"], row["active"], row["health"][:9]) == ("", "true", '{"state":')
    (line,) = lines_of(exported(mine, "subscriptions", "format=ndjson"))
    assert line["description"] == "=1+1"


def test_an_empty_list_has_its_columns(mine: Api) -> None:
    header = exported(mine, "dead-letters", "format=csv&event_type=none.such").body
    assert header.startswith(b"id,saga_id,event_id,")
    assert header.count(b"\r\n") == 1
    assert exported(mine, "dead-letters", "format=ndjson&event_type=none.such").body == b""


def test_a_limit_ends_an_export_and_names_the_rest(mine: Api) -> None:
    first = exported(mine, "dead-letters", "format=ndjson&limit=3")
    rest = exported(mine, "dead-letters", f"format=ndjson&cursor={first.headers[exports.NEXT_HEADER]}")
    whole = lines_of(exported(mine, "dead-letters", "format=ndjson"))
    assert (len(lines_of(first)), len(whole)) == (3, EVENTS)
    assert lines_of(first) + lines_of(rest) == whole


def test_a_filter_and_an_error_are_those_of_the_list(mine: Api) -> None:
    assert_problem(
        mine.get("/v1/dead-letters?format=csv&subscription_id=x"), 422, "invalid_parameter", "subscription_id"
    )
    assert_problem(mine.get("/v1/dead-letters?format=csv&cursor=x"), 422, "invalid_cursor", "cursor")
    assert_problem(mine.get("/v1/attempts/follow?format=csv"), 422, "unknown_parameter", "format")


def test_codes_of_the_inside_are_not_exported_to_a_subscriber(running: RunningSystem, mine: Api) -> None:
    running.run("SET session_replication_role = replica")
    running.run(
        "UPDATE dead_letters SET final_error_code = 'dns_error' WHERE starts_with(tenant_id, 'export')"
    )
    running.run("SET session_replication_role = DEFAULT")
    seen = {line["final_error_code"] for line in lines_of(exported(mine, "dead-letters", "format=ndjson"))}
    assert seen == {"no_public_address"}


def test_dead_letters_that_were_not_requeued(running: RunningSystem, api: Api, refusing_url: str) -> None:
    subscription = subscribe(running, api, new_name("again"), refusing_url)
    for _ in range(3):
        post(api, subscription["event_type"])
    letters = dead_letters(running, subscription["id"], 3)
    api.good("POST", f"/v1/dead-letters/{letters[1]}/requeue")
    dead_letters(running, subscription["id"], 4)

    def ids(query: str) -> list[int]:
        path = f"/v1/dead-letters?subscription_id={subscription['id']}&{query}"
        return [item["id"] for item in api.good("GET", path)["items"]]

    assert ids("requeued=true") == [letters[1]]
    assert set(ids("requeued=false")) == {letters[0], letters[2], max(ids(""))}
    assert_problem(api.get("/v1/dead-letters?requeued=yes"), 422, "invalid_parameter", "requeued")


def test_behind_a_gateway_an_export_ends_and_names_the_rest(
    running: RunningSystem, mine: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function sends its answer as a whole, within limits."""
    monkeypatch.setattr(exports, "MAX_LIMIT", 2)
    monkeypatch.setattr(exports, "MAX_WHOLE_BYTES", 1)

    def through_a_gateway(**query: str) -> dict[str, Any]:
        event = {
            "httpMethod": "GET",
            "path": "/v1/dead-letters",
            "queryStringParameters": {"format": "ndjson", **query},
            "headers": {"authorization": f"Bearer {mine.key}"},
        }
        return running.answer(answer_gateway(build_app(running.services, ALL_ROUTES), event))

    seen: list[dict[str, Any]] = []
    answer = through_a_gateway()
    for _ in range(EVENTS):
        seen += [json.loads(line) for line in answer["body"].splitlines()]
        rest = answer["multiValueHeaders"].get(exports.NEXT_HEADER)
        part = "" if rest is None else ".part"
        file = f'attachment; filename="dead-letters{part}.ndjson"'
        assert answer["multiValueHeaders"]["content-disposition"] == [file]
        if rest is None:
            break
        answer = through_a_gateway(cursor=rest[0])
    assert seen == lines_of(exported(mine, "dead-letters", "format=ndjson"))


def test_a_fault_within_an_export_ends_the_connection_before_the_end(
    running: RunningSystem, mine: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no client takes a part for the whole; and the next request is answered."""
    monkeypatch.setattr(exports, "MAX_LIMIT", 2)
    pages = 0
    read = operations.list_dead_letters

    async def failing_later(*arguments: Any, **options: Any) -> DeadLetterPage:
        nonlocal pages
        pages += 1
        if pages > 2:
            raise DatabaseUnavailable("it went away")
        return await read(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(operations, "list_dead_letters", failing_later)
        with pytest.raises(http.client.IncompleteRead) as incomplete:
            mine.get("/v1/dead-letters?format=ndjson")
    assert len(incomplete.value.partial.splitlines()) == 4
    assert len(lines_of(exported(mine, "dead-letters", "format=ndjson"))) == EVENTS


def test_no_transaction_is_open_between_two_pages(
    running: RunningSystem, mine: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MAX_LIMIT", 2)
    query = "SELECT 1 FROM pg_stat_activity WHERE usename = 'dead_letter_operator' AND state = 'idle in transaction'"
    seen: list[int] = []
    write = exports.dump_json

    def looking(row: Any) -> str:
        seen.append(len(running.rows(query)))
        return write(row)

    monkeypatch.setattr(exports, "dump_json", looking)
    exported(mine, "dead-letters", "format=ndjson")
    assert seen == [0] * EVENTS
