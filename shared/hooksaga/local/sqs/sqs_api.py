"""Asynchronous client of an emulator's SQS API; boto3 would block a thread per call."""

import json
from collections.abc import Sequence
from typing import Any, Self

import aiohttp

from hooksaga.local.sqs.runtime_api import REGION

MAX_BATCH = 10
MAX_DELAY_SECONDS = 900
MAX_WAIT_SECONDS = 20
_CREDENTIAL = (
    f"AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/sqs/aws4_request, SignedHeaders=host, Signature=0"
)


class SqsError(Exception):
    """The endpoint returned an error or is unreachable. `code` is the service's code, empty without a response."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code


class SqsApi:
    """Client of one endpoint. Requests are unsigned: emulators read only the region of the credential."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, action: str, **parameters: Any) -> dict[str, Any]:
        """Call an action, with parameters named as in the API. Raises SqsError."""
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"AmazonSQS.{action}",
            "authorization": _CREDENTIAL,
        }
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=MAX_WAIT_SECONDS + 20))
        body = json.dumps(parameters)
        try:
            async with self._session.post(self.endpoint + "/", data=body, headers=headers) as response:
                text = await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise SqsError("", f"no answer from {self.endpoint}: {error!r}") from error
        if response.status != 200:
            raise _refusal(response.status, text)
        return json.loads(text or "{}")

    async def create_queue(self, name: str, **attributes: Any) -> str:
        """Create a queue if it does not exist, and return its URL. Raises SqsError for a delay that AWS rejects."""
        if int(attributes.get("DelaySeconds", 0)) > MAX_DELAY_SECONDS:
            raise SqsError("InvalidAttributeValue", f"DelaySeconds must be between 0 and {MAX_DELAY_SECONDS}")
        texts = {
            key: value if isinstance(value, str) else json.dumps(value) for key, value in attributes.items()
        }
        return (await self.call("CreateQueue", QueueName=name, Attributes=texts))["QueueUrl"]

    async def attributes(self, url: str) -> dict[str, str]:
        return (await self.call("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"]))["Attributes"]

    async def receive(self, url: str, most: int = MAX_BATCH, wait_seconds: int = 0) -> list[dict[str, Any]]:
        """Return up to ten messages with all their attributes."""
        answer = await self.call(
            "ReceiveMessage",
            QueueUrl=url,
            MaxNumberOfMessages=min(most, MAX_BATCH),
            WaitTimeSeconds=wait_seconds,
            AttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return answer.get("Messages", [])

    async def delete(self, url: str, receipts: Sequence[str]) -> None:
        """Delete messages. An expired receipt is not an error: the message will be received again."""
        for start in range(0, len(receipts), MAX_BATCH):
            batch = receipts[start : start + MAX_BATCH]
            entries = [{"Id": str(number), "ReceiptHandle": receipt} for number, receipt in enumerate(batch)]
            await self.call("DeleteMessageBatch", QueueUrl=url, Entries=entries)

    async def send(self, url: str, *bodies: str, delay_seconds: int = 0) -> None:
        """Send messages, for tests and tools. Raises SqsError for a delay that AWS rejects."""
        if delay_seconds > MAX_DELAY_SECONDS:
            raise SqsError("InvalidParameterValue", f"DelaySeconds must be between 0 and {MAX_DELAY_SECONDS}")
        for body in bodies:
            await self.call("SendMessage", QueueUrl=url, MessageBody=body, DelaySeconds=delay_seconds)

    async def depth(self, url: str) -> int:
        """Return the number of messages in a queue: visible, delayed and in flight."""
        attributes = await self.attributes(url)
        names = ("", "Delayed", "NotVisible")
        return sum(int(attributes.get(f"ApproximateNumberOfMessages{name}", 0)) for name in names)


def _refusal(status: int, text: str) -> SqsError:
    try:
        answer = json.loads(text)
        code = str(answer.get("__type", "")).rpartition("#")[2]
        return SqsError(code, str(answer.get("message") or answer.get("Message")))
    except (ValueError, AttributeError):
        return SqsError(str(status), text[:200])
