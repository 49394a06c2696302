"""What the portal says about errors, in English; the catalogue of the portal has the translations.

The details of the API are in English and name things by their names in the API, so a subscriber never sees them.
"""

ERRORS: dict[str, str] = {
    "bad_request": "The request is malformed.",
    "forbidden": "Your link does not allow this, or the page is out of date. Load the page again.",
    "unauthorized": "Your link is no longer valid.",
    "route_not_found": "There is no such page.",
    "event_not_found": "There is no such event, or it is older than what is kept.",
    "subscription_not_found": "There is no such endpoint, or it was deleted.",
    "dead_letter_not_found": "There is no such failed delivery.",
    "saga_not_found": "There is no such delivery.",
    "attempt_not_found": "There is no such attempt.",
    "event_type_not_found": "There is no such event type.",
    "subscription_inactive": "The endpoint is switched off or not verified. Switch it on and verify it first.",
    "event_type_not_received": "The endpoint does not receive events of this type.",
    "too_many_secrets": (
        "Too many old secrets are still valid. Wait until one expires, or keep the old secret valid for 0 hours."
    ),
    "callback_url_changed": "The address was changed meanwhile. Verify it again.",
    "saga_not_waiting": "The delivery no longer waits: it is under way or has ended.",
    "saga_not_ended": "The delivery has not ended. It can be retried now instead.",
    "nothing_waits": "Nothing waits for a retry.",
    "payload_removed": "The content of the event is no longer kept, so it cannot be sent again.",
    "event_erased": "The event was erased, so it cannot be sent again.",
    "invalid_json": "This is not valid JSON.",
    "body_not_utf8": "The text must be UTF-8.",
    "body_too_deep": "The JSON is nested too deeply.",
    "body_too_large": "The content is too large.",
    "body_too_slow": "The form arrived too slowly. Try again.",
    "body_incomplete": "The connection broke. Try again.",
    "body_compressed": "The form must not be compressed.",
    "unsupported_media_type": "The form has the wrong type.",
    "unsupported_charset": "The text must be UTF-8.",
    "invalid_field": "A value is missing or not allowed.",
    "invalid_parameter": "A value is not allowed.",
    "invalid_cursor": "Start again from the first page.",
    "invalid_attributes": "An attribute is not allowed.",
    "invalid_callback_url": "The address must be a public https:// URL.",
    "verification_failed": "Your server did not answer the verification request correctly.",
    "payload_mismatch": "The content does not match the schema of the event type.",
    "value_refused": "One of the values cannot be stored.",
    "event_refused": "The content cannot be stored.",
    "too_many_requests": "Too many requests. Try again later.",
    "database_unavailable": "Please try again in a moment.",
    "queue_unavailable": "Nothing was changed. Please try again in a moment.",
    "internal_error": "Something went wrong on our side. Please try again.",
}
"""By code. A code that rules explain has here what is said for a detail that no rule knows."""

OTHER = "The request was refused."

CAUSES: dict[str, str] = {
    "timeout_connect": "no connection within the timeout",
    "timeout_total": "no answer within the timeout",
    "no_public_address": "the address has no public IP address",
    "tls_error": "TLS error (certificate?)",
    "connection_refused": "connection refused",
    "connection_reset": "connection broken",
    "invalid_url": "the address is not valid",
    "protocol_error": "the answer is not HTTP",
    "lease_expired": "no result; tried again",
    "subscription_inactive": "the endpoint was switched off",
    "canceled": "canceled",
    "discarded": "left out when the endpoint resumed",
    "expired": "waited too long",
    "erased": "the content was erased",
    "internal_error": "an error on our side",
}
"""Causes of a failed attempt, by the codes that subscribers see; `http_<status>` is the status."""

FIELDS: dict[str, str] = {
    "event_types": "Event types",
    "filter": "Filter",
    "callback_url": "Address",
    "description": "Description",
    "max_retry_limit": "Attempts",
    "base_delay_seconds": "Wait before the first retry",
    "timeout_seconds": "Timeout of an attempt",
    "max_in_flight": "Requests at the same time",
    "rate_limit": "Rate limit",
    "max_wait_seconds": "Longest wait of an event",
    "format": "Format",
    "secret": "Signing secret",
    "overlap_seconds": "Time for the old secret, in seconds",
    "overlap_hours": "Hours for the old secret",
    "subscription": "Number of the endpoint",
    "type": "Event type",
    "error": "Cause of failure",
    "error_code": "Cause of failure",
    "outcome": "Outcome",
    "answer": "Status of the answer",
    "state": "Sent again",
    "after": "From",
    "before": "Until",
    "endpoint": "Number of the endpoint",
    "q": "Search",
    "tick": "Choice",
}
"""Labels of fields; those of a filter's parts are one."""

_NUMBER = r"(?P<number>[0-9,.^-]+)"

RULES: tuple[tuple[str, str], ...] = (
    (rf"Input should be less than or equal to {_NUMBER}", "must be at most {number}"),
    (rf"Input should be greater than or equal to {_NUMBER}", "must be at least {number}"),
    (rf"Input should be greater than {_NUMBER}", "must be more than {number}"),
    (r"Input should be a (valid|finite) (number|integer).*", "must be a number"),
    (r"must be a number", "must be a number"),
    (r"must be an integer of 1 or more", "must be a number"),
    (
        r"must be an integer from (?P<least>[0-9]+) to (?P<most>[0-9]+)",
        "must be a whole number from {least} to {most}",
    ),
    (rf"String should have at most {_NUMBER} characters?", "must have at most {number} characters"),
    (r"String should have at least 1 character", "is required"),
    (rf"has at most {_NUMBER} printable characters", "has at most {number} characters"),
    (r"control characters are not allowed", "must not contain control characters"),
    (r"must be a time such as (?P<time>\S+)", "must be a time such as {time}"),
    (r"(Input should be '.*|must be one of: .*)", "is not one of the choices"),
    (r"must be later than (?P<begin>.*)", "must be later than {begin}"),
    (r"a ticked row must be an id", "choose rows of the list"),
    (r"the body must be a form", "the form could not be read; load the page again"),
    (
        r"error_code \w+ and the codes that it replaces require an operator's key",
        "this cause cannot be searched for",
    ),
    (
        r"must be 1 to 100 event types.*, not '(?P<name>.*)'",
        (
            "“{name}” is not a name of an event type: at most 100 letters, digits and _ . : / -, or a prefix such as "
            "invoice.*, or *"
        ),
    ),
    (r"must be 1 to 100 event types.*", "choose 1 to 100"),
    (r"must start with https://", "must start with https://"),
    (rf"must have at most {_NUMBER} characters", "must have at most {number} characters"),
    (
        r"must not contain spaces, control or invisible characters, or backslashes",
        "must not contain spaces, invisible characters or backslashes",
    ),
    (r"must not have a fragment \(#\)", "must not contain #"),
    (
        r"must percent-encode non-ASCII characters in its path and query",
        "must percent-encode other than ASCII characters in its path and query",
    ),
    (r"must not contain a user name or password \(@\)", "must not contain a user name or password"),
    (r"has unbalanced brackets around its host", "has unbalanced brackets"),
    (r"an IPv6 address in callback_url must be in brackets", "an IPv6 address must be in brackets"),
    (r"the port of callback_url must be a number from 1 to 65535", "the port must be from 1 to 65535"),
    (
        r"must not use port (?P<port>[0-9]+), the port of another service",
        "must not use port {port}, the port of another service",
    ),
    (r"must have a host", "must have a host"),
    (
        r"the bracketed host of callback_url must be an IPv6 address",
        "the brackets must contain an IPv6 address",
    ),
    (r"an IPv6 address in callback_url must not have a zone id", "an IPv6 address must not have a zone id"),
    (
        r"an IPv4 address in callback_url must be four decimal numbers",
        "an IPv4 address must be four decimal numbers",
    ),
    (r"the address in callback_url is not permitted", "must not be an address inside a network"),
    (r"the host of callback_url must be a valid domain name", "the host must be a valid domain name"),
    (r"the host of callback_url must be a public DNS name", "the host must be a public name"),
    (
        r"the response body must be the challenge only, as text, or as .*",
        "the answer must be the challenge only, as text or as a JSON object with only the challenge",
    ),
    (
        r"DNS returns no public address for the host of callback_url \(\w+\)",
        "the host has no public IP address",
    ),
    (r"did not answer with 2xx \((?P<cause>\w+)\)", "your server did not answer 2xx: {cause}"),
    (r"the subscription's secret cannot be read; rotate it", "the signing secret cannot be read; replace it"),
    (
        r"the subscription's headers cannot be read; set them again",
        "the custom headers cannot be read; your provider can set them again",
    ),
    (r"a signing secret starts with whsec_", "must start with whsec_"),
    (r"a signing secret is padded base64 after whsec_", "must be base64 after whsec_"),
    (
        r"a signing key has (?P<least>[0-9]+) to (?P<most>[0-9]+) bytes, not [0-9]+",
        "must be base64 of {least} to {most} bytes after whsec_",
    ),
    (
        r"Input should be a valid dictionary|must be an object of attribute names",
        "must be a JSON object of attribute names",
    ),
    (rf"must have at most {_NUMBER} characters of JSON", "must have at most {number} characters"),
    (rf"must have at most {_NUMBER} patterns and values", "must have at most {number} values"),
    (rf"must have 1 to {_NUMBER} names", "must have 1 to {number} names"),
    (rf"must be a list of 2 to {_NUMBER} objects", "$or must be a list of 2 to {number} objects"),
    (r"must not be inside another \$or", "$or must not be inside another $or"),
    (r"an attribute name must have .*", "an attribute name has 1 to 64 letters, digits and _ . -"),
    (
        r"must be a list of values and patterns, such as .*",
        'each attribute needs a list, such as ["a", {"prefix": "b"}]',
    ),
    (
        r"(must have one operator: |is not supported; the operators are )(?P<operators>.*)",
        "a pattern has one of the operators {operators}",
    ),
    (r"must not be null; .*", 'must not contain null; {"exists": false} matches an absent attribute'),
    (
        rf"must be a string of at most {_NUMBER} characters without control characters",
        "a text has at most {number} characters, without control characters",
    ),
    (r"must not be empty", "a value must not be empty"),
    (r"must be a number from -10\^30 to 10\^30", "a number must be from -10^30 to 10^30"),
    (r"must be a string, a number or a boolean", "a value must be a string, a number, true or false"),
    (r"must be true or false", "exists must be true or false"),
    (
        r"must be one comparison, such as .*",
        'numeric needs one comparison such as [">", 0], or two such as [">", 0, "<=", 150]',
    ),
    (r"must be one of =, .*", "a comparison is one of = < <= > >="),
    (
        r"must have > or >= first and < or <= second, if it has two comparisons",
        "of two comparisons, the first is > or >= and the second < or <=",
    ),
    (
        r"must be a value, a list of values, or one of (?P<operators>.*)",
        "anything-but takes a value, a list of values, or one of {operators}",
    ),
    (r"(the body |Expecting |Extra data|Invalid |Unterminated |Exceeds ).*", "is not valid JSON"),
)
"""Pattern of a detail without the name of its field, and what is said instead. The first that matches counts.

A test finds every detail that a form of the portal can get, and fails when one has no rule.
"""
