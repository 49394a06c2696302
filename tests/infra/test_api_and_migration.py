"""Every route has its function, and no new code runs before the schema is new."""

import json
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from jsonschema import Draft202012Validator
from starlette.routing import Route

from hooksaga.api.app import ALL_ROUTES
from hooksaga.api.openapi import openapi_document
from hooksaga.aws.deployment import ENVIRONMENTS
from hooksaga.aws.gateway_answers import CODES
from hooksaga.console.routes import ROUTES as CONSOLE_ROUTES
from hooksaga_cdk.components.rest_api import STAGE
from tests.infra.conftest import changed_dev
from tests.infra.deployment import Deployment

SCHEMAS = openapi_document()["components"]["schemas"]
PROBLEM = SCHEMAS["Problem"]


def paths_of(deployment: Deployment) -> set[tuple[str, str]]:
    return {
        (
            one["Properties"]["HttpMethod"],
            path_of(deployment, deployment.text(one["Properties"]["ResourceId"])),
        )
        for one in deployment.of_type("AWS::ApiGateway::Method").values()
    }


def path_of(deployment: Deployment, resource: str) -> str:
    if resource.endswith(".RootResourceId"):
        return ""
    properties = deployment.resources[resource]["Properties"]
    return f"{path_of(deployment, deployment.text(properties['ParentId']))}/{properties['PathPart']}"


def test_every_route_of_the_application_is_in_the_gateway(anywhere: Deployment) -> None:
    routes = {("ANY", route.path) for route in ALL_ROUTES if isinstance(route, Route)}
    pages = {
        (method, path + below)
        for path in ("/console", "/portal")
        for below in ("", "/{proxy+}")
        for method in ("GET", "POST")
    }
    beside_ingest = {("GET", "/v1/events"), ("HEAD", "/v1/events")}
    assert paths_of(anywhere) == routes | pages | beside_ingest


def test_every_page_is_below_a_path_that_the_gateway_knows() -> None:
    assert {route.path.split("/")[1] for route in CONSOLE_ROUTES} == {"console", "portal"}


def test_bodies_reach_the_functions_to_the_byte(anywhere: Deployment) -> None:
    (api,) = anywhere.of_type("AWS::ApiGateway::RestApi").values()
    assert api["Properties"]["BinaryMediaTypes"] == ["*/*"]


def test_what_the_gateway_answers_by_itself_leads_to_its_explanation(anywhere: Deployment) -> None:
    problems = gateway_problems(anywhere)
    assert {kind: problem["code"] for kind, problem in problems.items()} == CODES
    for problem in problems.values():
        assert problem["type"] == f"/{STAGE}/v1/docs#error-{problem['code']}"
        Draft202012Validator({**PROBLEM, "components": {"schemas": SCHEMAS}}).validate(problem)


def test_behind_a_domain_of_ones_own_no_stage_stands_in_the_path(own_domain: Deployment) -> None:
    problems = gateway_problems(own_domain)
    assert problems
    for problem in problems.values():
        assert problem["type"] == f"/v1/docs#error-{problem['code']}"


def gateway_problems(deployment: Deployment) -> dict[str, dict[str, Any]]:
    """By the gateway's name of the answer; the status of the answer is the problem's."""
    problems = {}
    for one in deployment.of_type("AWS::ApiGateway::GatewayResponse").values():
        properties = one["Properties"]
        problem = json.loads(properties["ResponseTemplates"]["application/json"])
        assert properties["StatusCode"] == str(problem["status"])
        problems[properties["ResponseType"]] = problem
    return problems


@pytest.fixture(scope="module")
def own_domain(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    dev = ENVIRONMENTS["dev"]
    certificate = "arn:aws:acm:eu-central-1:123456789012:certificate/1"
    api = replace(dev.api, domain_name="hooks.example.com", certificate_arn=certificate)
    return changed_dev(tmp_path_factory.mktemp("own_domain"), replace(dev, api=api))


def test_requests_are_throttled_and_logged(on_aws: Deployment) -> None:
    (stage,) = on_aws.of_type("AWS::ApiGateway::Stage").values()
    (every,) = stage["Properties"]["MethodSettings"]
    assert every["HttpMethod"] == "*"
    assert every["ThrottlingRateLimit"] > 0
    assert not every.get("DataTraceEnabled")


def test_the_accounts_role_for_logs_is_left_alone(on_aws: Deployment) -> None:
    """It is one for all APIs of the account, and a deployment would replace it."""
    assert not on_aws.of_type("AWS::ApiGateway::Account")


def test_the_role_can_be_made_and_logs_are_a_choice(
    dev: Deployment, prod: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (of_dev, of_prod) = (
        next(iter(one.of_type("AWS::ApiGateway::Stage").values()))["Properties"] for one in (dev, prod)
    )
    assert ("AccessLogSetting" in of_dev, "AccessLogSetting" in of_prod) == (False, True)
    api = replace(ENVIRONMENTS["dev"].api, access_log=True, account_log_role=True)
    changed = changed_dev(tmp_path_factory.mktemp("logs"), replace(ENVIRONMENTS["dev"], api=api))
    assert changed.of_type("AWS::ApiGateway::Account")


def test_a_page_and_what_it_asks_for_have_copies(on_aws: Deployment) -> None:
    """Page, styles, script, icon and live numbers, of some operators at a time."""
    env = ENVIRONMENTS[on_aws.functions["ingest"]["FunctionName"].split("-")[1]]
    assert env.console.concurrency >= 6
    reserved = on_aws.functions["console"].get("ReservedConcurrentExecutions", env.console.concurrency)
    assert reserved == env.console.concurrency


def test_every_function_waits_for_the_migration(anywhere: Deployment) -> None:
    (migration,) = anywhere.of_type("Custom::Migration")
    handlers = {
        one["Properties"].get("Handler", ""): one.get("DependsOn", ())
        for one in anywhere.of_type("AWS::Lambda::Function").values()
    }
    ours = {handler for handler in handlers if handler.startswith("functions.")}
    assert len(ours) == len(anywhere.functions)
    not_waiting = {handler for handler in ours if migration not in handlers[handler]}
    assert not_waiting == {"functions.migrate.handler.handler"}


def test_the_migration_runs_with_the_code_that_was_just_deployed(anywhere: Deployment) -> None:
    (migration,) = anywhere.of_type("Custom::Migration").values()
    migrate = next(
        name
        for name, one in anywhere.of_type("AWS::Lambda::Function").items()
        if "migrate" in one["Properties"].get("Handler", "")
    )
    assert migrate in migration["DependsOn"]
    assert len(migration["Properties"]["Schema"]) == 64


def stage_variables(deployment: Deployment) -> Any:
    (stage,) = deployment.of_type("AWS::ApiGateway::Stage").values()
    return stage["Properties"].get("Variables", {})


def test_the_stage_says_under_which_address_links_lead_to_the_api(on_aws: Deployment) -> None:
    """Not the functions' environment: the API names them, so they cannot name the API."""
    (api,) = on_aws.of_type("AWS::ApiGateway::RestApi")
    address = on_aws.text(stage_variables(on_aws)["PUBLIC_URL"])
    assert address == f"https://{api}.execute-api.AWS::Region.AWS::URLSuffix/{STAGE}"
    assert not [name for name, one in on_aws.functions.items() if "execute-api" in json.dumps(one)]


def test_with_a_domain_links_begin_with_it(own_domain: Deployment) -> None:
    assert stage_variables(own_domain) == {"PUBLIC_URL": "https://hooks.example.com"}


def test_the_address_of_an_emulator_is_left_to_its_caller(local: Deployment) -> None:
    assert stage_variables(local) == {}
