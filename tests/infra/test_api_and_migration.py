"""Every route has its function, and no new code runs before the schema is new."""

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from starlette.routing import Route

from shared.runtime.app import ALL_ROUTES
from tests.infra.deployment import Deployment


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
    routes = {
        (method, route.path)
        for route in ALL_ROUTES
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert paths_of(anywhere) == routes


def test_bodies_reach_the_functions_to_the_byte(anywhere: Deployment) -> None:
    (api,) = anywhere.of_type("AWS::ApiGateway::RestApi").values()
    assert api["Properties"]["BinaryMediaTypes"] == ["*/*"]


def test_requests_are_throttled_and_logged(on_aws: Deployment) -> None:
    (stage,) = on_aws.of_type("AWS::ApiGateway::Stage").values()
    (every,) = stage["Properties"]["MethodSettings"]
    assert every["HttpMethod"] == "*"
    assert every["ThrottlingRateLimit"] > 0
    assert every["DataTraceEnabled"] is False
    assert "AccessLogSetting" in stage["Properties"]


def test_every_function_waits_for_the_migration(anywhere: Deployment) -> None:
    (migration,) = anywhere.of_type("Custom::Migration")
    for name, one in anywhere.of_type("AWS::Lambda::Function").items():
        handler = one["Properties"].get("Handler", "")
        if handler.startswith("functions.") and "migrate" not in handler:
            assert migration in one["DependsOn"], name


def test_the_migration_runs_with_the_code_that_was_just_deployed(anywhere: Deployment) -> None:
    (migration,) = anywhere.of_type("Custom::Migration").values()
    migrate = next(
        name
        for name, one in anywhere.of_type("AWS::Lambda::Function").items()
        if "migrate" in one["Properties"].get("Handler", "")
    )
    assert migrate in migration["DependsOn"]
    assert len(migration["Properties"]["Schema"]) == 64
