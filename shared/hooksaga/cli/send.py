"""`hooksaga send`: posts events from files or standard input byte for byte."""

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from hooksaga.cli.api_access import Api
from hooksaga.cli.failures import FAILED, WrongUse
from hooksaga.cli.terminal import echo, echo_error, printable, progress_bar, show_json
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_input import check_idempotency_key, check_json_syntax

if TYPE_CHECKING:
    from hooksaga.local.api_client import ApiClient

STANDARD_INPUT = "-"
SENT_HEADERS = ("content-type", "idempotency-key")


class EventRequest(NamedTuple):
    """The body of one POST and its headers by lower-case name."""

    body: bytes
    headers: dict[str, str]


AttributesOption = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help='Attributes, for files that contain only payloads, such as \'{"order_id": "A-1001"}\'.',
        show_default=False,
    ),
]


def send(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files with one event each, or - for standard input."),
    ],
    event_type: Annotated[
        str | None,
        typer.Option(help="Event type, for files that contain only payloads.", show_default=False),
    ] = None,
    ordering_key: Annotated[
        str | None,
        typer.Option(help="Ordering key, for files that contain only payloads.", show_default=False),
    ] = None,
    attributes: AttributesOption = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(help="Repeating a call with the same key stores one event.", show_default=False),
    ] = None,
    *,
    api: Api,
) -> None:
    """Post events.

    A file contains {"event_type": ..., "payload": ...}, which is sent unchanged.

    A file can also contain a request in API Gateway's format, as in events-samples/: then its body and its
    Idempotency-Key are sent. With --json the output has one line per file.
    """
    if idempotency_key is not None and len(files) > 1:
        raise WrongUse("--idempotency-key applies to one event; send the files one by one")
    for name, value in (("ordering_key", ordering_key), ("attributes", attributes)):
        if value is not None and event_type is None:
            option = name.replace("_", "-")
            raise WrongUse(f"--{option} goes with --event-type; other files contain their own {name}")
    more = _more_fields(ordering_key, attributes)
    requests = [(file, read_request(file, event_type, idempotency_key, more)) for file in files]
    failed = 0
    client = api.connect()
    with progress_bar() as progress:
        for file, request in progress.track(requests, description="sending"):
            failed += not _post(client, file, request, api.as_json, alone=len(files) == 1)
    if failed:
        echo_error(f"{failed} of {len(files)} events were refused")
        raise typer.Exit(FAILED)


def _post(client: "ApiClient", file: str, request: EventRequest, as_json: bool, *, alone: bool) -> bool:
    """Post one event. Returns False if it was rejected; others may still be sent."""
    from hooksaga.local.api_client import ApiError

    try:
        answer = client.fetch("POST", "/v1/events", content=request.body, headers=request.headers)
    except ApiError as error:
        if alone or error.status in (0, 401, 403):
            raise
        echo_error(f"{file}: {printable(str(error))}")
        return False
    if as_json:
        show_json(answer)
    else:
        event = client.read(answer)
        repeated = ", which was accepted before with the same key" if event["duplicate"] else ""
        echo(f"{event['id']} {printable(event['event_type'])}{repeated}")
        if warning := event.get("warning"):
            echo_error(f"{file}: warning: {printable(warning['field'])}: {printable(warning['detail'])}")
    return True


def _more_fields(ordering_key: str | None, attributes: str | None) -> bytes:
    """Return further members of the envelope as JSON text, each with a comma before it."""
    key = "" if ordering_key is None else f', "ordering_key": {json.dumps(ordering_key)}'
    if attributes is None:
        return key.encode()
    try:
        text = attributes.encode()
        check_json_syntax(text)
    except (UnicodeEncodeError, InvalidInput) as error:
        raise WrongUse(f"--attributes: {error}") from None
    return key.encode() + b', "attributes": ' + text


def read_request(
    file: str, event_type: str | None, idempotency_key: str | None, more: bytes = b""
) -> EventRequest:
    """Return the request for a file. more: further members of the envelope, each with a comma before it.

    Raises WrongUse if the file does not match the options.
    """
    content = _content(file)
    if event_type is not None:
        request = EventRequest(_wrapped(file, content, event_type, more), {})
    else:
        request = _gateway_request(file, content) or EventRequest(content, {})
    if idempotency_key is None:
        return request
    try:
        check_idempotency_key(
            [idempotency_key]
        )  # HTTP strips surrounding spaces, so two different keys would become one
    except InvalidInput as error:
        raise WrongUse(f"--idempotency-key: {error}") from None
    return request._replace(headers={**request.headers, "idempotency-key": idempotency_key})


def _content(file: str) -> bytes:
    if file == STANDARD_INPUT:
        return typer.get_binary_stream("stdin").read()
    try:
        return Path(file).read_bytes()
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise WrongUse(f"cannot read {file}: {error.strerror}") from None


def _wrapped(file: str, payload: bytes, event_type: str, more: bytes) -> bytes:
    """Wrap the payload without parsing it, so that 1.10 does not become 1.1."""
    try:
        payload.decode()
        check_json_syntax(payload)
    except (UnicodeDecodeError, InvalidInput) as error:
        raise WrongUse(f"{file} is not JSON in UTF-8: {error}") from None
    except RecursionError:
        pass  # the API checks the depth
    return b'{"event_type": ' + json.dumps(event_type).encode() + more + b', "payload": ' + payload + b"}"


def _gateway_request(file: str, content: bytes) -> EventRequest | None:
    """Return the request inside an API Gateway event, or None for anything else."""
    try:
        event: Any = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or "httpMethod" not in event:
        return None
    fields = cast("dict[str, Any]", event)
    body = str(fields.get("body") or "").encode(errors="surrogatepass")
    headers = {str(name).lower(): str(value) for name, value in (fields.get("headers") or {}).items()}
    sent = {name: value for name, value in headers.items() if name in SENT_HEADERS or name.startswith("ce-")}
    return EventRequest(_decoded(file, body) if fields.get("isBase64Encoded") else body, sent)


def _decoded(file: str, body: bytes) -> bytes:
    try:
        return base64.b64decode(body, validate=True)
    except ValueError:
        raise WrongUse(f"{file} marks its body as base64, but the body is not base64") from None
