"""Functions that do on command what real ones do by mistake: the event, or the body of a message, says what."""

import json
import os
import time
from typing import Any


def handler(event: dict[str, Any], context: Any) -> Any:
    """One command: `{"do": …}`."""
    match event["do"]:
        case "tell":
            return {
                "pid": os.getpid(),
                "milliseconds_left": context.get_remaining_time_in_millis(),
                "request_id": context.aws_request_id,
                "arn": context.invoked_function_arn,
                "variables": sorted(os.environ),
            }
        case "raise":
            raise ValueError(event["why"])
        case "sleep":
            time.sleep(event["seconds"])
            return {"pid": os.getpid()}
        case "exit":
            os._exit(event["code"])
        case "fill":
            return "x" * event["bytes"]


def take_batch(event: dict[str, Any], _context: Any) -> Any:
    """Keeps the messages whose body is `keep`; `answer …` answers that JSON instead, `raise` raises."""
    time.sleep(0.2)
    bodies = [record["body"] for record in event["Records"]]
    if "raise" in bodies:
        raise RuntimeError("asked to")
    for body in bodies:
        if body.startswith("answer "):
            return json.loads(body.removeprefix("answer "))
    kept = [record["messageId"] for record in event["Records"] if record["body"] == "keep"]
    return {"batchItemFailures": [{"itemIdentifier": one} for one in kept], "records": event["Records"]}
