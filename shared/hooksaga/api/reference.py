"""Readable reference of the API at /v1/docs: the OpenAPI document and the errors as one page.

`python -m docs.generators.reference_page` generates the page, which is committed beside this file, so nothing
is generated here.
"""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.api.problem_types import DOCS_PATH

PAGE_FILE = Path(__file__).with_name("reference.html")
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


@cache
def page() -> str:
    return PAGE_FILE.read_text(encoding="utf-8")


@cache
def page_headers() -> dict[str, str]:
    """Return headers that allow only the page's inline style sheet; a browser may load or run nothing else."""
    digests = [base64.b64encode(hashlib.sha256(css.encode()).digest()) for css in _STYLE.findall(page())]
    styles = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    return {
        "content-security-policy": (
            f"default-src 'none'; style-src {styles}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "public, max-age=300",
    }


async def serve_reference(_request: Request) -> Response:
    """Serve the page without a key: its content is public."""
    return Response(page(), media_type="text/html", headers=page_headers())


ROUTES = [Route(DOCS_PATH, serve_reference, methods=["GET"])]
