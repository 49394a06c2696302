"""A synthesised deployment as a reviewer would ask about it: who may do what to which resource."""

import copy
import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

Resource = dict[str, Any]


class Deployment:
    """All stacks of one assembly, as if they were one template."""

    def __init__(self, templates: list[dict[str, Any]]) -> None:
        self.templates = templates
        self.resources: dict[str, Resource] = {}
        for template in templates:
            self.resources |= template.get("Resources", {})

    @classmethod
    def read(cls, folder: Path) -> "Deployment":
        return cls([json.loads(path.read_text()) for path in sorted(folder.glob("*.template.json"))])

    def copy(self) -> "Deployment":
        """Return a copy that a test may break."""
        return Deployment(copy.deepcopy(self.templates))

    def of_type(self, kind: str) -> dict[str, Resource]:
        return {name: one for name, one in self.resources.items() if one["Type"] == kind}

    def text(self, value: Any) -> str:
        """An intrinsic as text: `Id` for a Ref, `Id.Attribute`, and joined parts."""
        match value:
            case {"Fn::GetAtt": [name, attribute]}:
                return f"{name}.{attribute}"
            case {"Ref": name}:
                return name
            case {"Fn::Join": [separator, parts]}:
                return separator.join(self.text(part) for part in parts)
            case {"Fn::Select": [index, {"Fn::Split": [separator, text]}]}:
                return f"{self.text(text)}({separator}{index})"
            case _:
                return str(value)

    @property
    def functions(self) -> dict[str, Resource]:
        """Our functions' properties, by the name of their folder. The CDK's own have no name that is given."""
        found = {}
        for one in self.of_type("AWS::Lambda::Function").values():
            if handler := one["Properties"].get("Handler", ""):
                package, _, rest = handler.partition(".")
                if package == "functions":
                    found[rest.split(".")[0]] = one["Properties"]
        return found

    def queue(self, name: str) -> str:
        """The logical id of a queue, by what follows the deployment's name in its own."""
        return next(
            queue_id
            for queue_id, one in self.of_type("AWS::SQS::Queue").items()
            if one["Properties"]["QueueName"].split("-", 2)[2] == name
        )

    def who_may(self, action: str, resource: str) -> set[str]:
        """Names of functions, or logical ids of other roles, that are allowed the action on the resource's text."""
        return {
            who
            for who, statement in self.statements()
            if statement["Effect"] == "Allow"
            and any(fnmatchcase(action, pattern) for pattern in _listed(statement["Action"]))
            and any(fnmatchcase(resource, self.text(one)) for one in _listed(statement["Resource"]))
        }

    def statements(self) -> Iterator[tuple[str, Resource]]:
        """Every statement of every role's policies, with who it is about."""
        names = {self.text(one["Role"]).split(".")[0]: name for name, one in self.functions.items()}
        for policy in self.of_type("AWS::IAM::Policy").values():
            for role in policy["Properties"]["Roles"]:
                for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                    yield names.get(self.text(role), self.text(role)), statement
        for role_id, role in self.of_type("AWS::IAM::Role").items():
            for policy in role["Properties"].get("Policies", []):
                for statement in policy["PolicyDocument"]["Statement"]:
                    yield names.get(role_id, role_id), statement

    def environment(self, function: str) -> dict[str, str]:
        variables = self.functions[function].get("Environment", {}).get("Variables", {})
        return {name: self.text(value) for name, value in variables.items()}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
