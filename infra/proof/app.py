"""The CDK app of the proof's deployment: hooksaga's own stack, under a name that no other deployment has."""

from infra.node import use_current_node

use_current_node()  # before the CDK starts one

from aws_cdk import App, Stack  # noqa: E402

from infra.app import build, build_on_aws, main  # noqa: E402
from infra.proof.place import proof_environment  # noqa: E402


def build_proof(app: App) -> Stack:
    """Add the stack of the proof. Raises InvalidDeployment."""
    if app.node.try_get_context("target") == "local":
        return build(app)
    return build_on_aws(app, proof_environment(app.node.try_get_context("like") or "dev"))


if __name__ == "__main__":
    main(build_proof)
