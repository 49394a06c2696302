"""The shortest way to one attempt."""

from hooksaga.adapters.http_sender import HttpSender, OutgoingRequest, SendOutcome


async def post(sender: HttpSender, url: str, body: bytes = b"{}", seconds: float = 3) -> SendOutcome:
    """Sends body as JSON; seconds is the deadline of the attempt."""
    return await sender.send(OutgoingRequest(url, {"content-type": "application/json"}, body, seconds))
