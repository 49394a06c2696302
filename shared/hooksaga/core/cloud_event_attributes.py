"""Names and texts of CloudEvents 1.0 that its input and its output share."""

import re

STRUCTURED_TYPE = "application/cloudevents+json"
HEADER_PREFIX = "ce-"

KEPT = ("time", "dataschema", "datacontenttype", "tenantid", "traceparent", "tracestate")
"""Attributes of an incoming CloudEvent that only its column `cloud_event` holds."""

NOT_EXTENSIONS = frozenset({"specversion", "id", "source", "type", "subject", "data", "partitionkey", *KEPT})
"""Names that an attribute of the event cannot have as an extension: CloudEvents or hooksaga defines them."""

_NONCHARACTERS = "\ufdd0-\ufdef" + "".join(
    chr(0x10000 * plane + last) for plane in range(17) for last in (0xFFFE, 0xFFFF)
)
NO_CHARACTER = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\udfff{_NONCHARACTERS}]")
"""Characters that no string of a CloudEvent contains."""
