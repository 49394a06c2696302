"""All of hooksaga as one construct."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from collections.abc import Mapping
from dataclasses import dataclass, replace
from re import sub
from typing import Any

from aws_cdk import CfnOutput, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_route53_targets as targets
from aws_cdk import aws_sns as sns
from constructs import Construct

from hooksaga.adapters.queues import Queue
from hooksaga.aws.deployment import Environment, environment_named
from hooksaga_cdk.checks import DATABASE_URL, check
from hooksaga_cdk.components.access_rules import AccessRules
from hooksaga_cdk.components.alarms import Alarms
from hooksaga_cdk.components.dashboard import Dashboard
from hooksaga_cdk.components.database import Database
from hooksaga_cdk.components.database_access import DatabaseAccess, GivenDatabase
from hooksaga_cdk.components.encryption import encrypt
from hooksaga_cdk.components.endpoints import Endpoints, api_endpoint
from hooksaga_cdk.components.function_set import FunctionSet
from hooksaga_cdk.components.migration import Migration
from hooksaga_cdk.components.network import SUBNETS, Network
from hooksaga_cdk.components.place import Places, Subnets
from hooksaga_cdk.components.queues import Queues, title_of
from hooksaga_cdk.components.rest_api import RestApi
from hooksaga_cdk.components.secrets_key import SecretsKey
from hooksaga_cdk.components.ticks import Ticks
from hooksaga_cdk.components.watched_api import watch_api, watch_firewall
from hooksaga_cdk.components.watched_database import watch_database
from hooksaga_cdk.components.watched_functions import watch_functions
from hooksaga_cdk.components.watched_network import watch_network
from hooksaga_cdk.components.watched_queues import watch_queues
from hooksaga_cdk.components.watched_work import watch_work
from hooksaga_cdk.components.web_firewall import WebFirewall
from hooksaga_cdk.given import Domain, ExistingDatabase


@dataclass(frozen=True, slots=True)
class Given:
    """What exists already, and where the deployment differs from one of its own."""

    vpc: ec2.IVpc | None = None
    subnets: Subnets | None = None
    endpoints: ec2.ISecurityGroup | None = None
    database: ExistingDatabase | None = None
    domain: Domain | None = None
    private_api: bool | ec2.IInterfaceVpcEndpoint = False


class Hooksaga(Construct):
    """The network, database, queues, functions, API and alarms of one deployment.

    `settings` are the name of an environment, or an Environment of your own. Everything else is optional:

    vpc: a VPC instead of a new one. Its NAT decides the source address of deliveries.
    subnets: its subnets; by default those with NAT for calls to receivers, and isolated ones, if any, for the rest.
    endpoints: the security group of its endpoints of SQS and Secrets Manager, if it has them.
    database: an instance or a cluster of yours instead of a new instance: see ExistingDatabase. It needs `vpc`.
    domain: a domain name of the API, with its certificate.
    private_api: True for an API that only the VPC reaches, or its execute-api endpoint if the VPC has one.
    encryption_key: encrypts queues, logs, secrets, the new database and the alarms' topic: see `key_statements`.
    alarm_topic: a topic that the alarms notify instead of a new one.
    permissions_boundary: a boundary of every role. tags: on every resource that has tags.
    variables: further environment variables of every function.

    Raises InvalidDeployment, with a line for each broken rule.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        settings: Environment | str = "dev",
        *,
        vpc: ec2.IVpc | None = None,
        subnets: Subnets | None = None,
        endpoints: ec2.ISecurityGroup | None = None,
        database: ExistingDatabase | rds.DatabaseInstance | rds.DatabaseCluster | None = None,
        domain: Domain | None = None,
        private_api: bool | ec2.IInterfaceVpcEndpoint = False,
        encryption_key: kms.IKey | None = None,
        alarm_topic: sns.ITopic | None = None,
        permissions_boundary: iam.IManagedPolicy | None = None,
        tags: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.env = environment_named(settings) if isinstance(settings, str) else settings
        if isinstance(database, rds.DatabaseInstance | rds.DatabaseCluster):
            database = ExistingDatabase.of(database)
        self.given = Given(vpc, subnets, endpoints, database, domain, private_api)
        check(self, variables or {})
        self.env = _with_domain(self.env, domain)
        self.places: Places | None = None
        self.database: Database | None = None
        self._nats: list[str] = []
        self._firewall: WebFirewall | None = None
        if self.env.is_local:
            access: DatabaseAccess = GivenDatabase((variables or {})[DATABASE_URL])
        else:
            self.places = self._places()
            access = self._database(self.places)
        self._pipeline(access, variables or {})
        self._api(self.places)
        self._watch(alarm_topic)
        self._apply(encryption_key, permissions_boundary, tags or {})

    def _places(self) -> Places:
        given, env = self.given, self.env
        vpc, subnets = given.vpc, given.subnets
        if vpc is None:
            network = Network(self, "Network", env)
            vpc, subnets, self._nats = network.vpc, SUBNETS, network.nat_gateways
            self._output("EgressAddress", network.egress_address, "Deliveries come from here")
        existing = given.database
        rules = AccessRules(
            self,
            "AccessRules",
            vpc,
            env.receiver_ports,
            proxy=env.database.proxy and existing is None,
            endpoints=given.endpoints,
            **({"database": existing.security_group, "database_port": existing.port} if existing else {}),
        )
        places = Places(vpc, subnets or _default_subnets(vpc), rules)
        if given.endpoints is None:
            Endpoints(self, "Endpoints", places, env.endpoint_zones)
        return places

    def _database(self, places: Places) -> DatabaseAccess:
        if self.given.database is not None:
            return self.given.database.access
        self.database = Database(self, "Database", self.env, places)
        self._output("DatabaseHost", self.database.instance.db_instance_endpoint_address)
        return self.database.access

    def _pipeline(self, access: DatabaseAccess, variables: Mapping[str, str]) -> None:
        env, places = self.env, self.places
        around = list(self.node.children)
        migration = Migration(
            self,
            "Migration",
            env=env,
            place=places.of(calls_receivers=False) if places else None,
            database=access,
        )
        # It runs while the stack is created: not before the routes, rules and endpoints that it needs.
        migration.node.add_dependency(*(one for one in around if not isinstance(one, CfnOutput)))
        self.queues = Queues(self, "Queues", env)
        self.functions = FunctionSet(
            self,
            "Functions",
            env=env,
            places=places,
            database=access,
            queues=self.queues,
            secrets_key=SecretsKey(self, "SecretsKey", env),
            extra=variables,
            after=migration,
        ).functions
        self._migrate = migration.migrate
        Ticks(self, "Ticks", env, self.functions)
        for queue, resource in self.queues.work.items():
            self._output(f"{title_of(queue)}QueueUrl", resource.queue_url)
        intake = self.queues.work[Queue.INTAKE].queue_arn
        self._output("IntakeQueueArn", intake, "Target of EventBridge rules and SNS topics")
        self._output("AdminFunction", f"{env.prefix}-admin")

    def _api(self, places: Places | None) -> None:
        env, private = self.env, self.given.private_api
        endpoint = None if isinstance(private, bool) else private
        if private is True and places is not None:
            endpoint = api_endpoint(self, "ApiEndpoint", places, env.endpoint_zones)
        self.api_endpoint = endpoint
        self.api = RestApi(self, "RestApi", env, self.functions, endpoint)
        if env.api.web_firewall and endpoint is None and not env.is_local:
            self._firewall = WebFirewall(self, "WebFirewall", env, self.api.api.deployment_stage)
        self._output("ApiUrl", self.api.url)
        self._output("ApiId", self.api.api.rest_api_id)
        self._output(
            "NextStep", f"hooksaga keys create --stack {env.prefix} --name first", "Makes the first API key"
        )
        if (domain := self.api.api.domain_name) is not None:
            self._output("DomainTarget", domain.domain_name_alias_domain_name)
            if self.given.domain is not None and self.given.domain.zone is not None:
                _add_records(
                    self, self.given.domain, route53.RecordTarget.from_alias(targets.ApiGatewayDomain(domain))
                )

    def _watch(self, topic: sns.ITopic | None) -> None:
        alarms = Alarms(self, "Alarms", self.env, topic)
        widgets = [
            *watch_api(alarms, self.api),
            *(watch_firewall(alarms, self._firewall) if self._firewall else []),
            *watch_queues(alarms, self.queues),
            *watch_work(alarms, self.functions),
            *watch_functions(alarms, self.functions),
            *(watch_database(alarms, self.env, self.database) if self.database else []),
            *(watch_network(alarms, self.env, self._nats) if self._nats else []),
        ]
        Dashboard(self, "Dashboard", self.env, widgets)
        self.alarm_topic = alarms.topic
        self._output("AlarmTopic", alarms.topic.topic_arn)

    def _apply(
        self, key: kms.IKey | None, boundary: iam.IManagedPolicy | None, tags: Mapping[str, str]
    ) -> None:
        if key is not None:
            encrypt(self, key, [one.role for one in (*self.functions.values(), self._migrate)])
        if boundary is not None:
            iam.PermissionsBoundary.of(self).apply(boundary)
        for name, value in {"hooksaga": self.env.name, **tags}.items():
            Tags.of(self).add(name, value, exclude_resource_types=["AWS::RDS::DBProxyTargetGroup"])

    def _output(self, name: str, value: str, description: str | None = None) -> None:
        """Add an output of the stack, named after the construct and what it is."""
        output = CfnOutput(self, name, value=value, description=description)
        output.override_logical_id(sub(r"[^A-Za-z0-9]", "", f"{self.node.id}{name}"))


def _with_domain(env: Environment, domain: Domain | None) -> Environment:
    if domain is None:
        return env
    named: Any = {"domain_name": domain.name, "certificate_arn": domain.certificate.certificate_arn}
    return replace(env, api=replace(env.api, **named))


def _default_subnets(vpc: ec2.IVpc) -> Subnets:
    outbound = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)
    isolated = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
    inside = isolated if vpc.isolated_subnets else outbound
    return Subnets(outbound, inside, inside)


def _add_records(scope: Construct, domain: Domain, target: route53.RecordTarget) -> None:
    assert domain.zone is not None
    route53.ARecord(scope, "Record", zone=domain.zone, record_name=f"{domain.name}.", target=target)
