# Run: WEBHOOK_SECRET=whsec_... python receiver.py
import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_SECONDS = 300


def is_genuine(key: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether one of the signatures is right, and the time is near. body: the bytes as they arrived."""
    message_id, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not message_id or not (sent_at.isascii() and sent_at.isdigit()):
        return False
    if abs(time.time() - int(sent_at)) > TOLERANCE_SECONDS:
        return False
    signed = f"{message_id}.{sent_at}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected.encode(), one.encode()) for one in given)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        key = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path.split("?")[0] != "/hooks":
            return self.answer(404)
        if not is_genuine(key, dict(self.headers.items()), body):
            return self.answer(400)
        match event := json.loads(body):
            case {"type": "subscription.verification", "challenge": str(challenge)}:
                return self.answer(200, challenge.encode())
            case _:
                # Skip an id that you have seen; else store the event.
                self.log_message("%s %s", self.headers["webhook-id"], event)
                return self.answer(204)

    def answer(self, status: int, text: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    ThreadingHTTPServer(("", int(os.environ.get("PORT", "8000"))), Receiver).serve_forever()
