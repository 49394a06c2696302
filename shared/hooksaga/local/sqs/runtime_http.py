"""Minimal HTTP of the runtime API, one request at a time."""

import asyncio
import json
import signal
from collections.abc import Mapping
from typing import Any

MAX_RESPONSE_BYTES = 6_291_556


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[str, str, bytes] | None:
    """Return method, path and body; None at the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    request_line, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    method, path, _ = request_line.split(" ")
    return method, path, await reader.readexactly(int(headers.get("content-length", "0")))


def response(status: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return head and body in one write: with two, the second would wait for an acknowledgement of the first."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def exit_error(request_id: str, code: int | None) -> dict[str, Any]:
    if not code:
        how = "Runtime exited without providing a reason"
    elif code > 0:
        how = f"Runtime exited with error: exit status {code}"
    else:
        how = f"Runtime exited with error: signal: {(signal.strsignal(-code) or str(-code)).lower()}"
    return {"errorType": "Runtime.ExitError", "errorMessage": f"RequestId: {request_id} Error: {how}"}


def too_large(size: int) -> bytes:
    message = (
        f"Response payload size ({size} bytes) exceeded maximum allowed payload size "
        f"({MAX_RESPONSE_BYTES} bytes)."
    )
    return json.dumps({"errorMessage": message, "errorType": "Function.ResponseSizeTooLarge"}).encode()
