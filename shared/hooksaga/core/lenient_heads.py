"""Rewrites response heads that a strict parser rejects and other HTTP clients accept.

Pure. A head is accepted if only its framing or spelling is odd and its status is certain: RFC 9112 §6.3, and what at
least two of curl, Go's net/http and Python's requests accept. docs/hostile-cases.md lists the outcomes. The length of
such a response's body is a guess, so its connection is not reused.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

# Whole heads are matched without backtracking: 256 KiB of any input take milliseconds.
_START = b"HTTP/1."
_BLANK_LINES = re.compile(rb"(?:\r?\n)++")
_STATUS_LINE = re.compile(rb"HTTP/1\.[0-9] +([1-9][0-9]{2})(?: [^\r\n\0]*)?\r?\n")
_END = re.compile(rb"\n\r?\n")
# A name may contain and end with blanks, as in Go and curl. A line that begins with one continues the value.
_NAME = rb"[!#$%&'*+.^_`|~0-9A-Za-z-][!#$%&'*+.^_`|~0-9A-Za-z\t -]*+"
_HEADERS = re.compile(rb"(?:(?:" + _NAME + rb":|[\t ])[^\r\n\0]*+\r?\n)*+\r?\n")
_KEPT = re.compile(
    rb"^(content-length|transfer-encoding|retry-after)[\t ]*:([^\n]*(?:\n[\t ][^\n]*)*)",
    re.IGNORECASE | re.MULTILINE,
)
_LENGTH = re.compile(rb"[0-9]{1,19}")  # fits into 64 bits
_PRINTABLE = re.compile(rb"[ -~]*")
_SWITCHING_PROTOCOLS = 101

_Headers = Mapping[bytes, Sequence[bytes]]


class MalformedHead(Exception):
    """Not the head of an HTTP/1 response, or a head with ambiguous status or length."""


def has_no_body(status: int) -> bool:
    """Return whether a response to a POST ends with its head, whatever its headers say (RFC 9112 §6.3)."""
    return status < 200 or status in (204, 304)


class LenientHead:
    """Reads one response head incrementally. Interim heads (1xx) are dropped."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._begin = 0  # of the status line, and of its line end
        self._searched = 0
        self._status: int | None = None

    def feed(self, data: bytes) -> bytes | None:
        """Return None until the head is complete, then an equivalent strict head, and the bytes after it.

        Raises MalformedHead, at once for an invalid status line, so that the rest of a banner is not awaited.
        """
        self._data += data
        while (status := self._read_status_line()) is not None and (end := self._find_end()) is not None:
            headers = _kept_headers(bytes(self._data[self._begin + 1 : end]))
            if status >= 200 or status == _SWITCHING_PROTOCOLS:
                return _strict_head(status, headers) + bytes(self._data[end:])
            self._begin, self._searched, self._status = end, end, None
        return None

    def _read_status_line(self) -> int | None:
        if self._status is not None:
            return self._status
        if blank := _BLANK_LINES.match(self._data, self._begin):
            self._begin = blank.end()
        if not _may_begin(bytes(self._data[self._begin : self._begin + len(_START)])):
            raise MalformedHead("not an HTTP/1 answer")
        end = self._data.find(b"\n", max(self._begin, self._searched))
        self._searched = len(self._data)
        if end >= 0:
            self._status = _status(bytes(self._data[self._begin : end + 1]))
            self._begin = self._searched = end
        return self._status

    def _find_end(self) -> int | None:
        match = _END.search(self._data, max(self._begin, self._searched - 2))
        self._searched = len(self._data)
        return None if match is None else match.end()


def _may_begin(start: bytes) -> bool:
    """Return whether the beginning of a line can become a status line or an empty line."""
    return _START.startswith(start) or start == b"\r"


def _status(line: bytes) -> int:
    match = _STATUS_LINE.fullmatch(line)
    if match is None:
        raise MalformedHead("not the status line of an HTTP/1 answer")
    return int(match[1])


def _kept_headers(lines: bytes) -> _Headers:
    """Return the relevant headers with lower-case names. lines: all headers and the final empty line."""
    if not _HEADERS.fullmatch(lines):
        raise MalformedHead("a line that is not a header")
    headers: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for name, value in _KEPT.findall(lines):
        headers[name.lower()].append(b" ".join(value.split()))
    return headers


def _strict_head(status: int, headers: _Headers) -> bytes:
    waits = headers.get(b"retry-after", [])[:1]
    lines = [
        b"HTTP/1.1 %d OK" % status,
        b"Connection: close",
        *_framing(status, headers),
        *(b"Retry-After: " + wait for wait in waits if _PRINTABLE.fullmatch(wait)),
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _framing(status: int, headers: _Headers) -> list[bytes]:
    """Return the header that determines the end of the body; none if the connection's end does."""
    if has_no_body(status):
        return []
    codings = [one.lower() for one in _elements(headers, b"transfer-encoding")]
    codings = [one for one in codings if one not in (b"", b"identity")]
    if codings:  # they override any length
        return [b"Transfer-Encoding: chunked"] if codings[-1] == b"chunked" else []
    lengths = _elements(headers, b"content-length")
    if not all(map(_LENGTH.fullmatch, lengths)) or len(set(map(int, lengths))) > 1:
        raise MalformedHead("a length that is not one number")
    return [b"Content-Length: " + lengths[0]] if lengths else []


def _elements(headers: _Headers, name: bytes) -> list[bytes]:
    return [one.strip() for value in headers.get(name, []) for one in value.split(b",")]
