"""The key that encrypts signing secrets in the database."""

import string

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from hooksaga.aws.deployment import Environment
from hooksaga_cdk.components.exceptions import allow


class SecretsKey(Construct):
    """Generated once, and retained with the data: without it no signing secret can be decrypted."""

    def __init__(self, scope: Construct, name: str, env: Environment) -> None:
        super().__init__(scope, name)
        keep = env.database.keep_when_destroyed and not env.is_local
        self._name = f"{env.prefix}-secrets-key"
        self._secret = secretsmanager.Secret(
            self,
            "Secret",
            secret_name=self._name,
            description="Encrypts signing secrets. Before you rotate it, read docs/operations/keys.md.",
            # 43 characters of base64 are 32 bytes and two extra bits, which decoding ignores
            generate_secret_string=secretsmanager.SecretStringGenerator(
                password_length=43, exclude_characters=string.punctuation, require_each_included_type=False
            ),
            # Not RETAIN: after a failed first deployment the name would be in use, and the second one would fail.
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if keep else RemovalPolicy.DESTROY,
        )
        allow(
            self._secret,
            "AwsSolutions-SMG4",
            "A rotation keeps the old key until all is sealed anew: an operator's steps, not a timer's.",
        )

    def environment(self) -> dict[str, str]:
        return {"HOOKSAGA_SECRETS_KEY_ARN": self._secret.secret_arn}

    def allow_reading(self, role: iam.Role) -> None:
        """Allow reading the secret by its name and AWS's six-character suffix: some emulators do not return an ARN by
        Ref."""
        stack = Stack.of(self)
        arn = (
            f"arn:{stack.partition}:secretsmanager:{stack.region}:{stack.account}:secret:{self._name}-??????"
        )
        role.add_to_principal_policy(
            iam.PolicyStatement(actions=["secretsmanager:GetSecretValue"], resources=[arn])
        )
