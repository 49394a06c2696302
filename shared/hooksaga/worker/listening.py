"""The listening socket of the local HTTP server."""

import socket

HOST = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """Return a listening socket. Raises OSError when the port is in use.

    The protocol is set explicitly because asyncio disables Nagle's algorithm only for sockets that say TCP. With Nagle,
    a response in two pieces waits 40 ms for the client's acknowledgement of the first.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(2048)
    except BaseException:
        listening.close()
        raise
    return listening
