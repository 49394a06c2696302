"""All functions of the pipeline with their logins, queues, secrets and network access."""

from collections.abc import Mapping

from aws_cdk import aws_lambda_event_sources as sources
from constructs import Construct, IDependable

from hooksaga.adapters.queues import Queue
from hooksaga.aws.deployment import Environment
from infra.components.database_access import DatabaseAccess
from infra.components.function import LeastFunction
from infra.components.functions import DESIGNS, FunctionDesign
from infra.components.place import Places
from infra.components.queues import Queues
from infra.components.secrets_key import SecretsKey


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
            **self._extra,
        }

    def _wake(self, function: LeastFunction, queue: Queue) -> None:
        """Start the function for messages of the queue, within its concurrency. Failed messages return one by one."""
        function.function.add_event_source(
            sources.SqsEventSource(
                self._queues.work[queue],
                batch_size=self._env.batch_size_of(queue),
                max_concurrency=self._concurrency(queue),
                report_batch_item_failures=True,
            )
        )

    def _concurrency(self, queue: Queue) -> int:
        env = self._env
        shares = {
            Queue.ROUTING: env.router.concurrency,
            Queue.ORCHESTRATION: env.orchestrator.concurrency,
            Queue.DELIVERY: env.delivery.concurrency - env.slow_concurrency,
            Queue.DELIVERY_SLOW: env.slow_concurrency,
        }
        return shares[queue]
