"""The HTTP API: the routes of all functions behind API Gateway (REST, v1)."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from collections.abc import Mapping
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_apigateway as gateway
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from hooksaga.aws.deployment import Environment
from hooksaga.aws.gateway import PUBLIC_URL_VARIABLE
from hooksaga.aws.gateway_answers import CODES, headers_of, problem_text, status_of
from hooksaga.aws.gateway_routes import gateway_routes
from hooksaga_cdk.components.exceptions import allow
from hooksaga_cdk.components.function import LeastFunction
from hooksaga_cdk.components.functions import DESIGNS
from hooksaga_cdk.components.kept_logs import log_group

STAGE = "api"
"""First part of every path, unless there is a custom domain."""

PAGE_METHODS = ("GET", "POST")

TLS_POLICY = "SecurityPolicy_TLS13_1_2_PQ_2025_09"


class RestApi(Construct):
    """`url` ends with a slash. The gateway checks neither keys nor bodies; the functions do.

    With an endpoint the API is private: it answers only requests that arrive through this endpoint.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        env: Environment,
        functions: Mapping[str, LeastFunction],
        endpoint: ec2.IInterfaceVpcEndpoint | None = None,
    ) -> None:
        super().__init__(scope, name)
        self._env, self._endpoint = env, endpoint
        self.api = self._api()
        self._accept_findings()
        for one in gateway_routes([(name, design.routes) for name, design in DESIGNS.items()]):
            self._add(one.route.path, one.methods, functions[one.owner])
        for function_name, design in DESIGNS.items():
            for path in design.pages:
                self._add_pages(path, functions[function_name])
        for kind in CODES:
            self._answer(kind)

        self._set_public_url()

    @property
    def url(self) -> str:
        domain = self._env.api.domain_name
        if domain:
            return f"https://{domain}/"
        return self.api.url if self._endpoint is None else f"{self._gateway_url()}/"

    def _set_public_url(self) -> None:
        """Set a stage variable: a function's environment variable would be a circular dependency."""
        if (address := self._public_url()) is not None:
            stage = self.api.deployment_stage.node.default_child
            assert isinstance(stage, gateway.CfnStage)
            stage.variables = {PUBLIC_URL_VARIABLE: address}

    def _public_url(self) -> str | None:
        """Return None for an emulator, whose address only its caller knows."""
        if self._env.public_url or self._env.is_local:
            return self._env.public_url
        return self._gateway_url()

    def _gateway_url(self) -> str:
        """Return the URL at AWS, without a slash at its end. The name of a private API resolves everywhere, to the
        endpoint's addresses."""
        stack, host = Stack.of(self), self.api.rest_api_id
        if self._endpoint is not None:
            host = f"{host}-{self._endpoint.vpc_endpoint_id}"
        return f"https://{host}.execute-api.{stack.region}.{stack.url_suffix}/{STAGE}"

    def _api(self) -> gateway.RestApi:
        env, own_domain = self._env, self._env.api.domain_name is not None
        api = gateway.RestApi(
            self,
            "Api",
            rest_api_name=env.prefix,
            endpoint_configuration=self._endpoint_configuration(),
            policy=None if self._endpoint is None else _only_through(self._endpoint),
            # In a text body the gateway silently replaces bytes that are not UTF-8.
            binary_media_types=["*/*"],
            disable_execute_api_endpoint=own_domain,
            domain_name=self._domain(),
            cloud_watch_role=env.api.account_log_role and not env.is_local,
            deploy_options=gateway.StageOptions(
                stage_name=STAGE, **({} if env.is_local else self._watching())
            ),
        )
        if not env.is_local:
            resource = api.node.default_child
            assert isinstance(resource, gateway.CfnRestApi)
            resource.security_policy = TLS_POLICY
            resource.endpoint_access_mode = "STRICT"
        return api

    def _endpoint_configuration(self) -> gateway.EndpointConfiguration:
        if self._endpoint is None:
            return gateway.EndpointConfiguration(types=[gateway.EndpointType.REGIONAL])
        return gateway.EndpointConfiguration(
            types=[gateway.EndpointType.PRIVATE], vpc_endpoints=[self._endpoint]
        )

    def _watching(self) -> dict[str, Any]:
        """Configure throttling, traces and the logs, if they are wanted.

        Metrics of single methods stay off: they have a price, and no alarm reads them.
        """
        env = self._env
        return {
            "throttling_rate_limit": env.api.requests_per_second,
            "throttling_burst_limit": env.api.burst,
            "tracing_enabled": env.tracing,
            **(self._logs() if env.api.access_log else {}),
        }

    def _logs(self) -> dict[str, Any]:
        """Configure the log of errors, and an access log without bodies and keys."""
        env = self._env
        log: logs.ILogGroup = log_group(self, "AccessLog", f"/hooksaga/{env.name}/access", env)
        return {
            "access_log_destination": gateway.LogGroupLogDestination(log),
            "access_log_format": gateway.AccessLogFormat.json_with_standard_fields(
                caller=False,
                http_method=True,
                ip=True,
                protocol=True,
                request_time=True,
                resource_path=True,
                response_length=True,
                status=True,
                user=False,
            ),
            "logging_level": gateway.MethodLoggingLevel.ERROR,
        }

    def _domain(self) -> gateway.DomainNameOptions | None:
        wanted = self._env.api
        if wanted.domain_name is None or wanted.certificate_arn is None:
            return None
        return gateway.DomainNameOptions(
            domain_name=wanted.domain_name,
            certificate=acm.Certificate.from_certificate_arn(self, "Certificate", wanted.certificate_arn),
            endpoint_type=gateway.EndpointType.REGIONAL,
            security_policy=gateway.SecurityPolicy.TLS_1_2,
        )

    def _add(self, path: str, methods: frozenset[str] | None, function: LeastFunction) -> None:
        integration = gateway.LambdaIntegration(function.function, scope_permission_to_method=False)
        for method in sorted(methods or ("ANY",)):
            self.api.root.resource_for_path(path).add_method(method, integration)

    def _add_pages(self, path: str, function: LeastFunction) -> None:
        integration = gateway.LambdaIntegration(function.function, scope_permission_to_method=False)
        for below in (path, f"{path}/{{proxy+}}"):
            resource = self.api.root.resource_for_path(below)
            for method in PAGE_METHODS:
                resource.add_method(method, integration)

    def _answer(self, kind: str) -> None:
        """$context.requestId is the id that the functions log."""
        root_path = "" if self._env.api.domain_name else f"/{STAGE}"
        self.api.add_gateway_response(
            f"Answer{kind.title().replace('_', '')}",
            type=gateway.ResponseType.of(kind),
            status_code=str(status_of(kind)),
            response_headers={name: f"'{value}'" for name, value in headers_of(kind).items()},
            templates={
                "application/json": problem_text(kind, request_id="$context.requestId", root_path=root_path)
            },
        )

    def _accept_findings(self) -> None:
        keys = "The functions check keys and sessions, so that revoking one is at once; health and docs are public."
        allow(self.api, "AwsSolutions-APIG4", keys)
        allow(self.api, "AwsSolutions-COG4", keys)
        allow(
            self.api,
            "AwsSolutions-APIG2",
            "The functions check bodies, and answer problems that name field and rule.",
        )
        if self._env.api.account_log_role:
            allow(
                self.api,
                "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]",
                "API Gateway's own role for an account's logs, which it documents with this policy.",
            )
        if not self._env.api.access_log:
            off = "Set by api.access_log, which needs a role of the whole account: off in dev."
            allow(self.api, "AwsSolutions-APIG1", off)
            allow(self.api, "AwsSolutions-APIG6", off)
        if self._endpoint is not None:
            allow(self.api, "AwsSolutions-APIG3", "Only the VPC endpoint reaches it.")
        elif not self._env.api.web_firewall:
            allow(
                self.api,
                "AwsSolutions-APIG3",
                "Set by api.web_firewall, which has a monthly price: off in dev.",
            )


def _only_through(endpoint: ec2.IInterfaceVpcEndpoint) -> iam.PolicyDocument:
    return iam.PolicyDocument(
        statements=[
            iam.PolicyStatement(
                principals=[iam.AnyPrincipal()],
                actions=["execute-api:Invoke"],
                resources=["execute-api:/*"],
                conditions={"StringEquals": {"aws:SourceVpce": endpoint.vpc_endpoint_id}},
            )
        ]
    )
