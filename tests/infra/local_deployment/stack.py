"""A deployment of the local target at one endpoint: made, called, and taken away again."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from hooksaga.aws.deployment import LOCAL
from infra.cdk_cli import command
from infra.cdk_cli import environment as cdk_environment

ACCOUNT = "000000000000"
REGION = "us-east-1"
ASSETS = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
CDK_SECONDS = 600


class DeployFailed(RuntimeError):
    """The end of what cdk said, which holds CloudFormation's reason."""


@dataclass(frozen=True)
class LocalStack:
    """`variables` are what the app and the functions are told; `root` is the checkout that is deployed."""

    endpoint: str
    variables: Mapping[str, str]
    root: Path
    work_dir: Path
    python: str | None = None

    def bootstrap(self) -> None:
        """Create what `cdk deploy` needs in an account. Its bucket refuses plain HTTP, which an emulator requires."""
        self._cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", "", cwd=self.work_dir)
        self.client("s3").delete_bucket_policy(Bucket=ASSETS)

    def deploy(self) -> dict[str, str]:
        """The outputs of the stack. Raises DeployFailed."""
        outputs = self.work_dir / "outputs.json"
        self._cdk(
            *("deploy", "--all", "--require-approval", "never", "--outputs-file", str(outputs)),
            *self._context(),
            cwd=self.root,
        )
        return json.loads(outputs.read_text())[LOCAL.prefix]

    def destroy(self) -> None:
        """Take every stack away. Raises DeployFailed."""
        self._cdk("destroy", "--all", "--force", *self._context(), cwd=self.root)

    def api_url(self, outputs: Mapping[str, str]) -> str:
        """Where the API answers on this machine: the URL in the outputs names a host that only AWS has."""
        stage = outputs["HooksApiUrl"].rstrip("/").rsplit("/", 1)[1]
        return f"{self.endpoint}/restapis/{outputs['HooksApiId']}/{stage}/_user_request_"

    def ask_admin(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """The admin function's answer. Raises RuntimeError when it failed."""
        answer = self.client("lambda").invoke(
            FunctionName=f"{LOCAL.prefix}-admin", Payload=json.dumps(action).encode()
        )
        content = json.loads(answer["Payload"].read())
        if "FunctionError" in answer:
            raise RuntimeError(f"the admin function failed: {content}")
        return content

    def leftovers(self) -> list[str]:
        """Names of ours that the endpoint still knows, whatever stack they came from."""
        names = [
            *(url.rsplit("/", 1)[1] for url in self._all("sqs", "list_queues", "QueueUrls")),
            *(one["FunctionName"] for one in self._all("lambda", "list_functions", "Functions")),
            *(one["logGroupName"] for one in self._all("logs", "describe_log_groups", "logGroups")),
            *(one["RoleName"] for one in self._all("iam", "list_roles", "Roles")),
            *(one["Name"] for one in self._all("secretsmanager", "list_secrets", "SecretList")),
            *(one["Name"] for one in self._all("events", "list_rules", "Rules")),
            *(one["name"] for one in self._all("apigateway", "get_rest_apis", "items")),
            *(one["AlarmName"] for one in self._all("cloudwatch", "describe_alarms", "MetricAlarms")),
        ]
        return sorted(name for name in names if "hooksaga" in name)

    def _all(self, service: str, operation: str, field: str) -> list[Any]:
        return getattr(self.client(service), operation)().get(field, [])

    def client(self, service: str) -> Any:
        return boto3.client(  # pyright: ignore[reportCallIssue, reportUnknownVariableType]
            service,  # pyright: ignore[reportArgumentType]
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def _context(self) -> list[str]:
        python = ["-c", f"python={self.python}"] if self.python else []
        return ["-c", "target=local", *python, "--output", str(self.work_dir / "cdk.out")]

    def _cdk(self, *args: str, cwd: Path) -> None:
        log = self.work_dir / "cdk.log"
        with log.open("w") as file:
            done = subprocess.run(
                [*command(), *args, "--progress", "events", "--no-color"],
                cwd=cwd,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                timeout=CDK_SECONDS,
                check=False,
            )
        if done.returncode != 0:
            raise DeployFailed(f"cdk {args[0]} failed:\n{log.read_text()[-6000:]}")

    def environment(self) -> dict[str, str]:
        """No profile and no credentials of the person's: this must never reach their account."""
        kept = {name: value for name, value in cdk_environment().items() if not name.startswith("AWS_")}
        emulator = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        # The code of this checkout, not of the one that is installed.
        code = [str(self.root / folder) for folder in ("shared", "cdk")]
        return {**kept, **emulator, **self.variables, "PYTHONPATH": os.pathsep.join(code)}
