"""Draws the deployment from its synthesised templates, and keeps the drawing in docs/deploy.md.

`python -m docs.generators.deployment_diagram` writes it anew; a test fails when the page and the templates differ.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from infra.node import use_current_node

PAGE = Path(__file__).resolve().parents[1] / "deploy.md"
BEGIN, END = (
    "<!-- drawn from the templates: python -m docs.generators.deployment_diagram -->",
    "<!-- end of drawing -->",
)

QUEUE = "queue-"
"""Begins a queue's name in the drawing: a function may be called the same."""

Resources = dict[str, dict[str, Any]]


def synthesise() -> Resources:
    """The resources of `dev`, without building bundles."""
    use_current_node()
    from aws_cdk import App

    from infra.app import build

    with tempfile.TemporaryDirectory() as folder:
        app = App(outdir=folder, context={"aws:cdk:bundling-stacks": []})
        build(app)
        app.synth()
        return read_resources(Path(folder))


def read_resources(folder: Path) -> Resources:
    """Return the resources of all templates in an assembly."""
    templates = [json.loads(path.read_text()) for path in sorted(folder.glob("*.template.json"))]
    return {name: one for template in templates for name, one in template.get("Resources", {}).items()}


def diagram(resources: Resources) -> str:
    """A Mermaid flowchart: what wakes whom, who sends where, who leaves the network. The database is left out:
    every function has a line to it."""
    functions, queues = _functions(resources), _queues(resources)
    lines = [
        *(f"    {name}([{name}])" for name in sorted(set(functions.values()))),
        *(f"    {name}[/{name.removeprefix(QUEUE)}/]" for name in sorted(queues.values())),
        *sorted(set(_wakes(resources, functions, queues))),
        *sorted(set(_sends(resources, functions, queues))),
        *sorted(set(_leaves(resources, functions))),
    ]
    return "\n".join(["```mermaid", "flowchart LR", *lines, "```"])


def _functions(resources: Resources) -> dict[str, str]:
    """Our functions' names by logical id, and by their role's."""
    names = {}
    for function_id, one in resources.items():
        handler = one["Properties"].get("Handler", "") if one["Type"] == "AWS::Lambda::Function" else ""
        if handler.startswith("functions."):
            names[function_id] = handler.split(".")[1]
            names[_id(one["Properties"]["Role"])] = handler.split(".")[1]
    return names


def _queues(resources: Resources) -> dict[str, str]:
    """The queues' names by logical id, without redrive queues to which no function sends."""
    found = {
        name: one["Properties"]["QueueName"]
        for name, one in resources.items()
        if one["Type"] == "AWS::SQS::Queue"
    }
    short = {queue: name.split("-", 2)[2] for queue, name in found.items()}
    return {
        queue: QUEUE + name
        for queue, name in short.items()
        if not name.endswith("-redrive") or name == "intake-redrive"
    }


def _wakes(resources: Resources, functions: dict[str, str], queues: dict[str, str]) -> Iterator[str]:
    callers = {
        "apigateway.amazonaws.com": "api{{API Gateway}}",
        "events.amazonaws.com": "clock((every minute))",
    }
    for one in resources.values():
        properties = one.get("Properties", {})
        if one["Type"] == "AWS::Lambda::EventSourceMapping":
            yield f"    {queues[_id(properties['EventSourceArn'])]} --> {functions[_id(properties['FunctionName'])]}"
        elif one["Type"] == "AWS::Lambda::Permission" and (
            name := functions.get(_id(properties["FunctionName"]))
        ):
            yield f"    {callers[properties['Principal']]} --> {name}"


def _sends(resources: Resources, functions: dict[str, str], queues: dict[str, str]) -> Iterator[str]:
    for one in resources.values():
        if one["Type"] != "AWS::IAM::Policy":
            continue
        for statement in one["Properties"]["PolicyDocument"]["Statement"]:
            if "sqs:SendMessage" in statement["Action"]:
                for target in _listed(statement["Resource"]):
                    yield f"    {functions[_id(one['Properties']['Roles'][0])]} --> {queues[_id(target)]}"


def _leaves(resources: Resources, functions: dict[str, str]) -> Iterator[str]:
    for function_id, one in resources.items():
        if one["Type"] != "AWS::Lambda::Function" or function_id not in functions:
            continue
        if "Outbound" in _id(one["Properties"]["VpcConfig"]["SecurityGroupIds"][0]):
            yield f"    {functions[function_id]} -. 443 .-> receivers>receivers]"


def _id(value: Any) -> str:
    """The logical id that an intrinsic points to."""
    match value:
        case {"Fn::GetAtt": [name, *_]} | {"Ref": name}:
            return name
        case _:
            return str(value)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def page_with(drawing: str) -> str:
    """The page with this drawing in its place."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n{drawing}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page_with(diagram(synthesise())), encoding="utf-8")
