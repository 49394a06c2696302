"""Type URIs of problems, which link to the explanation on the page at /v1/docs (RFC 9457 §3.1.1)."""

from urllib.parse import quote

DOCS_PATH = "/v1/docs"
ANCHOR = "error-"


def problem_type(code: str, root_path: str = "") -> str:
    """Return a reference with its full path, so that it is the same text everywhere in this API.

    root_path: ASGI's term for the prefix of the API's paths in the URL: a gateway's stage, or nothing.
    The host is left to the caller, who knows the name by which the API was reached; a Host header is only a claim.
    """
    return f"{quote(root_path)}{DOCS_PATH}#{ANCHOR}{code}"
