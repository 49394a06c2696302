"""Style sheet, script and icon, served under names with a content hash, so that browsers cache them permanently.

vendored.json lists third-party files with version, licence and hash, which a test verifies.
"""

import hashlib
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from hooksaga.core.errors import NotFound

FOLDER = Path(__file__).with_name("assets")
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_A_YEAR = "public, max-age=31536000, immutable"


@cache
def served() -> dict[str, Path]:
    """Return the assets by their served names, such as console.0123456789abcdef.css."""
    files = sorted(path for path in FOLDER.iterdir() if path.suffix in TYPES)
    return {f"{path.stem}.{_digest(path)}{path.suffix}": path for path in files}


@cache
def served_name(file_name: str) -> str:
    return next(name for name, path in served().items() if path.name == file_name)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


async def serve_asset(request: Request) -> Response:
    path = served().get(str(request.path_params["name"]))
    if path is None:
        raise NotFound("route_not_found", "there is no such asset")
    headers = {
        "cache-control": _A_YEAR,
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'",
        "cross-origin-resource-policy": "same-origin",
    }
    return Response(path.read_text(encoding="utf-8"), media_type=TYPES[path.suffix], headers=headers)
