"""Whether a problem's `type`, taken as a reference from the request's own URL, leads to its explanation."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urldefrag, urljoin

Get = Callable[[str], tuple[int, Mapping[str, str], str]]
"""URL to status, headers in lower case, and text."""


def assert_explained(problem: Mapping[str, Any], request_url: str, get: Get) -> None:
    """Resolve the reference as RFC 3986 and browsers do, and check its target."""
    url, anchor = urldefrag(urljoin(request_url, problem["type"]))
    status, headers, text = get(url)
    assert status == 200, url
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert re.search(rf'id="{re.escape(anchor)}"', text), anchor
    assert problem["code"] in anchor
