"""Error codes of the HTTP API for requests that are malformed or not allowed."""

from hooksaga.core.problem import Problem

REQUEST_PROBLEMS = (
    Problem(
        "invalid_json",
        400,
        "The body is not valid JSON: it is empty, incomplete, contains `NaN`, or contains half of a surrogate"
        " pair.",
        "Send one JSON object. `detail` names the position of the error.",
    ),
    Problem(
        "body_not_utf8",
        400,
        "The body is not UTF-8, or starts with a byte-order mark.",
        "Encode the body as UTF-8 without a byte-order mark.",
    ),
    Problem(
        "body_too_deep",
        400,
        "The JSON of the body, or of an item of a batch, is nested deeper than 64 levels.",
        "Flatten the JSON, or send a link to the data.",
    ),
    Problem(
        "body_not_base64",
        400,
        "A gateway marked the body as base64, but the body is not base64.",
        "Send the body unencoded. If you operate the gateway, configure all media types as binary.",
    ),
    Problem(
        "body_incomplete",
        400,
        "The connection closed before the end of the body.",
        "Repeat the call with the same `Idempotency-Key`.",
    ),
    Problem(
        "bad_request",
        400,
        "The HTTP request is malformed.",
        "Check the request line, the headers and their lengths.",
    ),
    Problem(
        "invalid_host",
        400,
        "The request has no `Host` header, more than one, or an invalid one.",
        "Send one `Host` header with the host of this API, as HTTP clients do by default.",
    ),
    Problem(
        "unauthorized",
        401,
        "The request has no API key, or the key is unknown or revoked.",
        "Send `Authorization: Bearer hs_…` with a valid key.",
    ),
    Problem(
        "forbidden",
        403,
        "The key lacks the scope that this route requires.",
        "Use a key with one of the scopes that `detail` names.",
    ),
    Problem(
        "tenant_not_allowed",
        403,
        "The key is bound to one tenant, and the request concerns another tenant or all tenants.",
        "Omit `tenant_id`, or use a key of that tenant. For `/v1/stats`, use a key that is not bound to a tenant.",
    ),
    Problem(
        "request_blocked",
        403,
        "The firewall in front of the API, on AWS, blocked the address: it has a bad reputation, or it sends "
        "too many requests.",
        "Send fewer requests from one address. If you send few, ask the operator for the firewall's log.",
    ),
    Problem(
        "route_not_found",
        404,
        "The path does not exist.",
        "Compare the path with the routes of this API. A trailing slash makes a different path.",
    ),
    Problem(
        "method_not_allowed",
        405,
        "The path does not support this method.",
        "Use one of the methods in the `Allow` header.",
    ),
    Problem(
        "head_too_slow",
        408,
        "The request line and the headers did not arrive within 10 seconds.",
        "Send them without pauses.",
    ),
    Problem(
        "body_too_slow",
        408,
        "The body did not arrive within 30 seconds.",
        "Send the body without pauses, and repeat the call with the same `Idempotency-Key`.",
    ),
    Problem(
        "body_too_large",
        413,
        "The body exceeds the limit that `detail` names.",
        "Send a link to the data, or fewer items per batch.",
    ),
    Problem(
        "body_compressed",
        415,
        "The body is compressed.",
        "Send the body without `Content-Encoding`.",
    ),
    Problem(
        "unsupported_media_type",
        415,
        "The route does not accept this content type.",
        "Send `application/json`, or `application/cloudevents+json` to `/v1/events`.",
    ),
    Problem(
        "unsupported_charset",
        415,
        "The content type names a charset other than UTF-8.",
        "Encode the body as UTF-8, and name this charset or none.",
    ),
    Problem(
        "invalid_event",
        422,
        "The event lacks a field, or has an unknown field or a field of the wrong type.",
        "`field` names the field, and `detail` states the rule.",
    ),
    Problem(
        "invalid_event_type",
        422,
        "`event_type` is empty, too long, or contains a character that is not allowed.",
        "Use 1 to 100 of the characters `A-Z a-z 0-9 _ . : / -`.",
    ),
    Problem(
        "reserved_event_type",
        422,
        "`event_type` starts with `hooksaga.`, which is reserved for events of hooksaga.",
        "Use another type. You can subscribe to reserved types.",
    ),
    Problem(
        "invalid_tenant_id",
        422,
        "`tenant_id` is empty, too long, or contains a character that is not allowed.",
        "Use 1 to 100 of the characters `A-Z a-z 0-9 _ . : / -`.",
    ),
    Problem(
        "invalid_batch",
        422,
        "`items` is empty or contains more than 500 events.",
        "Send 1 to 500 items per call.",
    ),
    Problem(
        "invalid_cloud_event",
        422,
        "An attribute of the CloudEvent is missing or invalid, or the content mode is not supported.",
        "`field` names the attribute, and `detail` states the rule.",
    ),
    Problem(
        "invalid_idempotency_key",
        422,
        "The key is empty, longer than 255 characters, not printable ASCII, sent twice, or sent with a CloudEvent.",
        "Send one key of 1 to 255 printable ASCII characters without surrounding spaces. A CloudEvent has its"
        " own key.",
    ),
    Problem(
        "invalid_attributes",
        422,
        "`attributes` is not an object, has too many names, or has a name or value that breaks its rule.",
        "`field` names the attribute, and `detail` states the rule.",
    ),
    Problem(
        "payload_mismatch",
        422,
        "The payload does not match the schema of its event type.",
        "`field` names the place in the payload, and `detail` states the rule. `GET /v1/event-types/{name}` shows the "
        "schema.",
    ),
    Problem(
        "unknown_event_type",
        422,
        "The event type is not in the catalogue, and this system accepts no others.",
        "Check the spelling: `detail` names similar types. An operator adds new types with `PUT "
        "/v1/event-types/{name}`.",
    ),
    Problem(
        "event_type_archived",
        422,
        "The event type is archived and takes no more events.",
        "Send the type that replaces it. An operator can reactivate it with `archived: false`.",
    ),
    Problem(
        "invalid_schema",
        422,
        "The JSON Schema of an event type is invalid, refers to another document, has a pattern that cannot be "
        "matched in linear time, or could make one value need too many checks.",
        "`field` names the place in the schema, and `detail` states the rule.",
    ),
    Problem(
        "invalid_sample",
        422,
        "The sample of an event type does not match its schema.",
        "`field` names the place in the sample, and `detail` states the rule.",
    ),
    Problem(
        "invalid_ordering_key",
        422,
        "`ordering_key` is empty, longer than 255 characters, or contains a control character.",
        "Send 1 to 255 characters, or leave the field out.",
    ),
    Problem(
        "invalid_field",
        422,
        "A field of the body is missing, unknown, of the wrong type or out of bounds.",
        "`field` names the field, and `detail` states the rule.",
    ),
    Problem(
        "invalid_parameter",
        422,
        "A query parameter has the wrong format or is out of bounds.",
        "`field` names the parameter, and `detail` states the rule.",
    ),
    Problem(
        "unknown_parameter",
        422,
        "The route has no such query parameter.",
        "Compare `field` with the parameters of the route.",
    ),
    Problem(
        "invalid_cursor",
        422,
        "`cursor` is not a cursor that a list returned.",
        "Pass `next` of the previous page unchanged, or omit `cursor` for the first page.",
    ),
    Problem(
        "invalid_callback_url",
        422,
        "The URL is not https, does not point to the public internet, or is ambiguous for some parsers.",
        "`detail` states the rule. Use a plain `https://` URL.",
    ),
    Problem(
        "verification_failed",
        422,
        "The endpoint could not be reached, or did not answer the challenge.",
        "Answer 2xx within 10 seconds with the challenge only, then verify again. `detail` describes the response.",
    ),
    Problem(
        "event_refused",
        422,
        "The database does not accept this payload.",
        "Change the payload. The same payload will be refused again.",
    ),
    Problem(
        "value_refused",
        422,
        "The database does not accept one of the values.",
        "Change the value. The same value will be refused again.",
    ),
    Problem(
        "head_too_large",
        431,
        "The request line and the headers exceed 64 KiB.",
        "Send fewer or shorter headers. Send data in the body.",
    ),
)
