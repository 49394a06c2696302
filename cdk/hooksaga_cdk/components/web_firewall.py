"""AWS WAF in front of the API: addresses with a bad reputation, and too many requests from one address.

The managed rules for bodies are not used: a webhook payload can contain anything, and they would block it.
"""

from aws_cdk import Stack
from aws_cdk import aws_apigateway as gateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_wafv2 as waf
from constructs import Construct

from hooksaga.aws.deployment import Environment
from hooksaga_cdk.components.alarms import metric_of

BAD_ADDRESSES, TOO_MANY_REQUESTS = "bad-addresses", "too-many-requests"


class WebFirewall(Construct):
    def __init__(self, scope: Construct, name: str, env: Environment, stage: gateway.Stage) -> None:
        super().__init__(scope, name)
        self._acl_metric = f"{env.prefix}-web-firewall"
        acl = waf.CfnWebACL(
            self,
            "Rules",
            name=env.prefix,
            scope="REGIONAL",
            default_action=waf.CfnWebACL.DefaultActionProperty(allow=waf.CfnWebACL.AllowActionProperty()),
            visibility_config=_seen_as(self._acl_metric),
            rules=[_bad_reputation_rule(), _rate_rule(env.api.address_limit)],
        )
        waf.CfnWebACLAssociation(self, "BeforeStage", resource_arn=stage.stage_arn, web_acl_arn=acl.attr_arn)

    def blocked(self, rule: str) -> cloudwatch.Metric:
        """Return the number of requests that a rule blocked."""
        dimensions = {"WebACL": self._acl_metric, "Region": Stack.of(self).region, "Rule": rule}
        return metric_of("AWS/WAFV2", "BlockedRequests", dimensions, cloudwatch.Stats.SUM)


def _bad_reputation_rule() -> waf.CfnWebACL.RuleProperty:
    return waf.CfnWebACL.RuleProperty(
        name=BAD_ADDRESSES,
        priority=1,
        override_action=waf.CfnWebACL.OverrideActionProperty(none={}),
        statement=waf.CfnWebACL.StatementProperty(
            managed_rule_group_statement=waf.CfnWebACL.ManagedRuleGroupStatementProperty(
                vendor_name="AWS", name="AWSManagedRulesAmazonIpReputationList"
            )
        ),
        visibility_config=_seen_as(BAD_ADDRESSES),
    )


def _rate_rule(limit: int) -> waf.CfnWebACL.RuleProperty:
    return waf.CfnWebACL.RuleProperty(
        name=TOO_MANY_REQUESTS,
        priority=2,
        action=waf.CfnWebACL.RuleActionProperty(block=waf.CfnWebACL.BlockActionProperty()),
        statement=waf.CfnWebACL.StatementProperty(
            rate_based_statement=waf.CfnWebACL.RateBasedStatementProperty(
                limit=limit, aggregate_key_type="IP"
            )
        ),
        visibility_config=_seen_as(TOO_MANY_REQUESTS),
    )


def _seen_as(metric: str) -> waf.CfnWebACL.VisibilityConfigProperty:
    return waf.CfnWebACL.VisibilityConfigProperty(
        cloud_watch_metrics_enabled=True, metric_name=metric, sampled_requests_enabled=True
    )
