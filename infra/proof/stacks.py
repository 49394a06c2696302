"""The stacks of the proof, as CloudFormation sees them."""

from botocore.exceptions import ClientError

from infra.proof.proof import Proof
from infra.proof.results import StepFailed

RECEIVER = "receiver"


def stack_names(proof: Proof) -> list[str]:
    return [proof.place.prefix, f"{proof.place.prefix}-{RECEIVER}"]


def status_of(proof: Proof, stack: str) -> str:
    """Return the status of a stack; empty if there is none. Raises StepFailed if CloudFormation does not say."""
    try:
        found = proof.account.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if "does not exist" in str(error):
            return ""
        raise StepFailed(f"{stack}: {error}") from error
    return next((one["StackStatus"] for one in found if one["StackStatus"] != "DELETE_COMPLETE"), "")
