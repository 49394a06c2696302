"""AWS WAF in front of the API: addresses with a bad reputation, and too many requests from one address.

The managed rules for bodies are not used: a webhook payload can contain anything, and they would block it.
"""

from aws_cdk import aws_apigateway as gateway
from aws_cdk import aws_wafv2 as waf
from constructs import Construct

from hooksaga.aws.deployment import Environment


class WebFirewall(Construct):
    def __init__(self, scope: Construct, name: str, env: Environment, stage: gateway.Stage) -> None:
        super().__init__(scope, name)
        acl = waf.CfnWebACL(
            self,
            "Rules",
            name=env.prefix,
            scope="REGIONAL",
            default_action=waf.CfnWebACL.DefaultActionProperty(allow=waf.CfnWebACL.AllowActionProperty()),
            visibility_config=_seen_as(f"{env.prefix}-web-firewall"),
            rules=[_bad_reputation_rule(), _rate_rule(env.api.requests_per_address)],
        )
        waf.CfnWebACLAssociation(self, "BeforeStage", resource_arn=stage.stage_arn, web_acl_arn=acl.attr_arn)


def _bad_reputation_rule() -> waf.CfnWebACL.RuleProperty:
    return waf.CfnWebACL.RuleProperty(
        name="bad-addresses",
        priority=1,
        override_action=waf.CfnWebACL.OverrideActionProperty(none={}),
        statement=waf.CfnWebACL.StatementProperty(
            managed_rule_group_statement=waf.CfnWebACL.ManagedRuleGroupStatementProperty(
                vendor_name="AWS", name="AWSManagedRulesAmazonIpReputationList"
            )
        ),
        visibility_config=_seen_as("bad-addresses"),
    )


def _rate_rule(limit: int) -> waf.CfnWebACL.RuleProperty:
    return waf.CfnWebACL.RuleProperty(
        name="too-many-requests",
        priority=2,
        action=waf.CfnWebACL.RuleActionProperty(block=waf.CfnWebACL.BlockActionProperty()),
        statement=waf.CfnWebACL.StatementProperty(
            rate_based_statement=waf.CfnWebACL.RateBasedStatementProperty(
                limit=limit, aggregate_key_type="IP"
            )
        ),
        visibility_config=_seen_as("too-many-requests"),
    )


def _seen_as(metric: str) -> waf.CfnWebACL.VisibilityConfigProperty:
    return waf.CfnWebACL.VisibilityConfigProperty(
        cloud_watch_metrics_enabled=True, metric_name=metric, sampled_requests_enabled=True
    )
