"""A small application that shows its customers' webhooks in a frame.

    hooksaga up                                        # in one terminal
    HOOKSAGA_API_KEY=hs_... python examples/embed/server.py   # in another, then open http://localhost:8090

It needs only Python's standard library. Your own application does the same in its language: it knows who is signed in,
creates a link for this customer with its key, and puts the link into the frame. The key never reaches the browser.
"""

import argparse
import json
import os
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGE = Path(__file__).with_name("index.html")
API_URL = os.environ.get("HOOKSAGA_API_URL", "http://127.0.0.1:8080")
API_KEY = os.environ.get("HOOKSAGA_API_KEY", "")


def portal_link(tenant: str, language: str, origin: str) -> str:
    """Create a link for one customer: a look that fits the page, its language, and a frame of this origin only."""
    wanted = {
        "tenant_id": tenant,
        "embed_origin": origin,
        "header": False,
        "language": "zh-Hant" if language.lower().startswith("zh") else "en",
        "colour": "#6d28d9",
        "radius": 10,
        "font": "Inter",
        "scheme": "light",
    }
    request = urllib.request.Request(
        f"{API_URL}/v1/portal-links",
        json.dumps(wanted).encode(),
        {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)["url"]


class Application(BaseHTTPRequestHandler):
    tenant = "acme"
    origin = ""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/":
            self.answer("text/html; charset=utf-8", PAGE.read_bytes())
        elif path == "/portal-link":
            url = portal_link(self.tenant, query.removeprefix("language="), self.origin)
            self.answer("application/json", json.dumps({"url": url}).encode())
        else:
            self.send_error(404)

    def answer(self, content_type: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("cache-control", "no-store")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main() -> None:
    options = argparse.ArgumentParser(description="Show the webhooks of one customer in a frame.")
    options.add_argument("--port", type=int, default=8090)
    options.add_argument("--tenant", default="acme", help="the customer who is signed in")
    given = options.parse_args()
    Application.tenant, Application.origin = given.tenant, f"http://localhost:{given.port}"
    server = ThreadingHTTPServer(("127.0.0.1", given.port), Application)
    print(f"open {Application.origin}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
