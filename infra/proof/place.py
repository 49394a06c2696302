"""Where the proof runs: an account of AWS, or an emulator at AWS_ENDPOINT_URL."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hooksaga.aws.deployment import LOCAL, ApiSettings, Environment, environment_named

NAME = "proof"


def proof_environment(like: str) -> Environment:
    """Return the settings of the environment `like` under a name of their own, with a second database to fail over to
    and nothing that outlives it. Raises InvalidDeployment for an unknown name."""
    base = environment_named(like)
    database = replace(base.database, multi_az=True, keep_when_destroyed=False)
    return replace(base, name=NAME, database=database, alarm_mail=None, api=_own_address(base))


def _own_address(base: Environment) -> ApiSettings:
    """The domain of the other deployment stays with it."""
    return replace(base.api, domain_name=None, certificate_arn=None, public_url=None)


@dataclass(frozen=True, slots=True)
class Place:
    """`endpoint`: of an emulator, else None. `context`: further `-c` arguments of the CDK."""

    like: str
    endpoint: str | None
    context: tuple[str, ...] = ()

    @property
    def env(self) -> Environment:
        return LOCAL if self.endpoint else proof_environment(self.like)

    @property
    def prefix(self) -> str:
        return self.env.prefix

    @property
    def cdk_context(self) -> list[str]:
        chosen = "target=local" if self.endpoint else f"like={self.like}"
        return [word for one in (chosen, *self.context) for word in ("-c", one)]

    def api_url(self, outputs: Mapping[str, str]) -> str:
        """Return the API's URL without a trailing slash. An emulator's outputs name a host that only AWS has."""
        url = outputs["ApiUrl"].rstrip("/")
        if self.endpoint is None:
            return url
        return f"{self.endpoint}/restapis/{outputs['ApiId']}/{url.rsplit('/', 1)[1]}/_user_request_"

    def function_url(self, url: str) -> str:
        """Return a function's URL without a trailing slash, as this machine reaches it."""
        host = url.removeprefix("https://").rstrip("/")
        return f"{self.endpoint}/_aws/lambda-url/{host.split('.')[0]}" if self.endpoint else f"https://{host}"
