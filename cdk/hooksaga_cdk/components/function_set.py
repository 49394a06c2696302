"""All functions of the pipeline with their logins, queues, secrets and network access."""

from collections.abc import Mapping
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from constructs import Construct, IDependable

from hooksaga.adapters.queues import Queue
from hooksaga.aws.deployment import Environment
from hooksaga_cdk.components.database_access import DatabaseAccess
from hooksaga_cdk.components.function import LeastFunction
from hooksaga_cdk.components.functions import DESIGNS, FunctionDesign
from hooksaga_cdk.components.place import Places
from hooksaga_cdk.components.queues import Queues
from hooksaga_cdk.components.secrets_key import SecretsKey

AUTHORITIES = "receivers.pem"


class FunctionSet(Construct):
    """`functions[name]`. `extra`: variables of every function. `after`: what must be finished before they change."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        env: Environment,
        places: Places | None,
        database: DatabaseAccess,
        queues: Queues,
        secrets_key: SecretsKey,
        extra: Mapping[str, str],
        after: IDependable,
    ) -> None:
        super().__init__(scope, name)
        self._env, self._places, self._database = env, places, database
        self._queues, self._secrets_key, self._extra = queues, secrets_key, extra
        self._authorities = _layer_with(self, env.ca_file) if env.ca_file and not env.is_local else None
        self.functions = {name: self._make(name, design) for name, design in DESIGNS.items()}
        for function in self.functions.values():
            function.function.node.add_dependency(after)

    def _make(self, name: str, design: FunctionDesign) -> LeastFunction:
        places = self._places
        function = LeastFunction(
            self,
            name,
            env=self._env,
            limits=self._env.functions[name],
            place=places.of(calls_receivers=design.calls_receivers) if places else None,
            environment=self._environment(design),
            reserve=design.answers_http and self._env.reserve_api_concurrency,
            repeats=design.repeats,
        )
        if design.calls_receivers and self._authorities is not None:
            function.function.add_layers(self._authorities)
        for role in design.roles:
            self._database.allow_login(function.role, role)
        if design.opens_secrets:
            self._secrets_key.allow_reading(function.role)
        for queue in design.sends:
            self._queues.allow_sending(function.role, queue)
        for queue in design.reads:
            self._wake(function, queue)
        return function

    def _environment(self, design: FunctionDesign) -> dict[str, str]:
        return {
            **self._env.variables,
            **self._database.environment(design.role),
            **{
                f"HOOKSAGA_{queue.name}_QUEUE_URL": self._queues.work[queue].queue_url
                for queue in design.sends
            },
            **(self._secrets_key.environment() if design.opens_secrets else {}),
            **(
                {"HOOKSAGA_CA_FILE": f"/opt/{AUTHORITIES}"}
                if design.calls_receivers and self._authorities
                else {}
            ),
            **self._extra,
        }

    def _wake(self, function: LeastFunction, queue: Queue) -> None:
        """Start the function for messages of the queue, within its concurrency. Failed messages return one by one."""
        batching = self._env.batching(queue)
        window = Duration.seconds(batching.window_seconds) if batching.window_seconds else None
        function.function.add_event_source(
            sources.SqsEventSource(
                self._queues.work[queue],
                batch_size=batching.size,
                max_batching_window=window,
                max_concurrency=self._concurrency(queue),
                report_batch_item_failures=True,
            )
        )

    def _concurrency(self, queue: Queue) -> int:
        env = self._env
        shares = {
            Queue.INTAKE: env.intake.concurrency,
            Queue.ROUTING: env.router.concurrency,
            Queue.ORCHESTRATION: env.orchestrator.concurrency,
            Queue.DELIVERY: env.delivery.concurrency - env.slow_concurrency,
            Queue.DELIVERY_SLOW: env.slow_concurrency,
        }
        return shares[queue]


def _layer_with(scope: Construct, authorities: Path) -> lambda_.LayerVersion:
    """Create the layer with the certificate authorities of receivers, which Lambda puts into /opt."""
    with TemporaryDirectory() as folder:
        copyfile(authorities, Path(folder) / AUTHORITIES)
        return lambda_.LayerVersion(
            scope,
            "Authorities",
            code=lambda_.Code.from_asset(folder),
            description="hooksaga: certificate authorities of receivers",
        )
