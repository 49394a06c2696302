"""The URI that names a kind of problem and leads to its explanation on the page at /v1/docs (RFC 9457 §3.1.1)."""

from urllib.parse import quote

DOCS_PATH = "/v1/docs"
ANCHOR = "error-"


def problem_type(code: str, root_path: str = "") -> str:
    """A reference with its full path, so that it is the same text wherever under this API the problem occurs.

    root_path: what stands before the API's own paths in the URL, ASGI's word for it: a gateway's stage, or nothing.
    The host is left to the caller, who knows by what name the API was reached; a Host header only claims to know.
    """
    return f"{quote(root_path)}{DOCS_PATH}#{ANCHOR}{code}"
