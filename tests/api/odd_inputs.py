"""Requests whose texts could become other texts on their way, and the answers, the same in both modes: what has to be
ASCII or UTF-8 and is not is refused, and never made to be."""

from typing import NamedTuple

from tests.api.http_client import Answer, Api, event_body

CLOUD_EVENT = (("ce-specversion", "1.0"), ("ce-source", "/odd"), ("ce-type", "odd"))


class OddInput(NamedTuple):
    """A request and the answer to it. An empty code: it is taken."""

    method: str
    target: str
    status: int
    code: str = ""
    headers: tuple[tuple[str, str | bytes], ...] = ()
    body: bytes | None = None

    def sent_to(self, api: Api) -> Answer:
        return api.call(self.method, self.target, self.body, *self.headers)


def _event(*headers: tuple[str, str | bytes], code: str, body: bytes = event_body("odd")) -> OddInput:
    return OddInput("POST", "/v1/events", 422, code, headers, body)


def _key(value: bytes) -> OddInput:
    return _event(("idempotency-key", value), code="invalid_idempotency_key")


def _id(*values: bytes) -> OddInput:
    ids = tuple(("ce-id", value) for value in values)
    return _event(*CLOUD_EVENT, *ids, code="invalid_cloud_event", body=b"{}")


ODD_INPUTS = {
    "key of letters that Latin-1 lacks": _key("order-\u20ac".encode()),
    "key of letters that Latin-1 has": _key("order-\xe9".encode()),
    "key in Latin-1": _key(b"order-\xe9"),
    "key of no encoding": _key(b"order-\xff\xfe"),
    "two keys": _event(("idempotency-key", "a"), ("idempotency-key", "b"), code="invalid_idempotency_key"),
    "id of letters that Latin-1 lacks": _id("\u20ac".encode()),
    "id in Latin-1": _id(b"\xe9"),
    "id of no UTF-8 behind its percent signs": _id(b"%FF"),
    "id with a percent sign alone": _id(b"100%"),
    "two ids": _id(b"a", b"b"),
    "API key of letters that Latin-1 lacks": OddInput(
        "GET", "/v1/stats", 401, "unauthorized", (("authorization", "Bearer \u20ac".encode()),)
    ),
    "parameter of no UTF-8": OddInput("GET", "/v1/attempts?event_type=%FF", 422, "invalid_parameter"),
    "parameter that was replaced": OddInput(
        "GET", "/v1/attempts?event_type=%EF%BF%BD", 422, "invalid_parameter"
    ),
    "parameter twice": OddInput("GET", "/v1/attempts?limit=1&limit=2", 422, "invalid_parameter"),
    "parameter that is encoded twice": OddInput("GET", "/v1/attempts?limit=%2531", 422, "invalid_parameter"),
    "parameter with an encoded sign": OddInput("GET", "/v1/attempts?event_type=a%26limit%3Dx", 200),
    "parameter with spaces": OddInput("GET", "/v1/attempts?event_type=a+b%20c", 200),
    "path of no UTF-8": OddInput("GET", "/v1/events/%FF", 404, "event_not_found"),
    "path that is encoded twice": OddInput("GET", "/v1/subscriptions/%2531", 404, "subscription_not_found"),
    "digits of another script": OddInput("GET", "/v1/subscriptions/%D9%A1", 404, "subscription_not_found"),
    "fixed path, read as an id": OddInput("GET", "/v1/events/batch", 405, "method_not_allowed"),
    "fixed path, another method": OddInput("DELETE", "/v1/dead-letters/requeue", 405, "method_not_allowed"),
    "method that the path lacks": OddInput("PUT", "/v1/events", 405, "method_not_allowed", (), b"{}"),
}
