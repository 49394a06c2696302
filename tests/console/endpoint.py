"""A subscriber over TLS that is dead until it is fixed, and whose words are meant to hurt whoever shows them."""

import http.server
import json
import threading
from typing import Any

from hooksaga.local.tls import Certificates

HURTING = "</pre><script>document.title='hurt'</script><img src=x onerror=\"document.title='hurt'\">"


class Endpoint:
    """Answers challenges always, and events with 503 and HURTING until `fixed` is set. requests: headers and body."""

    def __init__(self, certificates: Certificates) -> None:
        self.fixed = threading.Event()
        self.bodies: list[bytes] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = certificates.server_context().wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="endpoint")
        self._thread.start()
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/hook"

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join(30)
        self._server.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                endpoint.requests.append(
                    ({name.lower(): value for name, value in self.headers.items()}, body)
                )
                self.answer(*endpoint.answer(body))

            def answer(self, status: int, text: bytes) -> None:
                self.send_response(status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
                pass

        return Handler

    def answer(self, body: bytes) -> tuple[int, bytes]:
        content = json.loads(body)
        if isinstance(content, dict) and content.get("type") == "subscription.verification":
            return 200, json.dumps({"challenge": content["challenge"]}).encode()
        self.bodies.append(body)
        return (200, b"thank you") if self.fixed.is_set() else (503, HURTING.encode())


class Application:
    """A subscriber's own application on another site, whose page shows the portal in a frame."""

    def __init__(self) -> None:
        self.framed = ""
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, name="application")
        self._thread.start()
        self.origin = f"http://localhost:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join(30)
        self._server.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        application = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = f"<!doctype html><title>app</title><iframe title=portal src='{application.framed}'></iframe>"
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(page)))
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
                pass

        return Handler
