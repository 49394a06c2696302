"""HTTP for the local front: uvicorn's fast protocol, with a bound on the request's head that it lacks."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 64 * 1024
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedHeadProtocol(HttpToolsProtocol):
    """Hangs up on a head that has passed MAX_HEAD_BYTES and is not complete yet.

    The bytes of one read may come on top: a body that arrived together with its head is not counted against it.
    """

    _head_bytes = 0
    _in_head = True

    def data_received(self, data: bytes) -> None:
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
            self.transport.write(TOO_LARGE)
            self.transport.close()
            return
        self._head_bytes += len(data)
        super().data_received(data)

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes = True, 0
        super().on_message_complete()
