"""Stack of the HTTP API and its optional firewall."""

from collections.abc import Mapping

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from hooksaga.aws.deployment import Environment
from infra.components.function import LeastFunction
from infra.components.rest_api import RestApi
from infra.components.web_firewall import WebFirewall


class ApiStack(Stack):
    def __init__(self, scope: Construct, env: Environment, functions: Mapping[str, LeastFunction]) -> None:
        super().__init__(scope, f"{env.prefix}-api", description="hooksaga: HTTP API")
        self.api = RestApi(self, "RestApi", env, functions)
        if env.api.web_firewall and not env.is_local:
            WebFirewall(self, "WebFirewall", env, self.api.api.deployment_stage)
        CfnOutput(self, "ApiUrl", value=self.api.url)
        CfnOutput(self, "ApiId", value=self.api.api.rest_api_id)
        CfnOutput(self, "NextStep", value=_next_step(env), description="Makes the first API key")
        if self.api.api.domain_name:
            CfnOutput(self, "DomainTarget", value=self.api.api.domain_name.domain_name_alias_domain_name)


def _next_step(env: Environment) -> str:
    return f"hooksaga keys create --stack {env.prefix} --name first"
