"""AWS credentials as plugins: each says where keys come from, and fetches them on the worker."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from streamcore import (
    CredentialProvider,
    Credentials,
    PluginError,
    Problem,
    Secret,
    option,
)

from .arns import sts_endpoint_complaint

KEY_ID, SECRET_KEY, TOKEN = "access-key-id", "secret-key", "session-token"
_JVM_VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS")


def keys(key_id: str, secret: str, token: str | None = None) -> Mapping[str, Secret]:
    """The three values every AWS client wants, under the names our connector knows."""
    found = {KEY_ID: Secret(key_id), SECRET_KEY: Secret(secret)}
    return found | ({TOKEN: Secret(token)} if token else {})


class Auto(CredentialProvider):
    """The AWS default chain: environment, web identity, profile, container, instance.

    With both basic keys given, and no provider named, it uses them.
    """

    identifier = "auto"
    option_prefix = ""

    key_id: Secret | None = option("basic.accesskeyid", "Access key id.", default=None)
    secret: Secret | None = option("basic.secretkey", "Secret access key.", default=None)

    def problems(self) -> Iterator[Problem | str]:
        # Half of a pair is a slip; whatever else the chain finds is not what was meant.
        if self.key_id and not self.secret:
            yield Problem("basic.secretkey", "required with 'aws.credentials.basic.accesskeyid'")
        if self.secret and not self.key_id:
            yield Problem("basic.accesskeyid", "required with 'aws.credentials.basic.secretkey'")

    def fetch(self, scope: Mapping[str, str]) -> Credentials:
        if self.key_id and self.secret:
            return Credentials(keys(self.key_id.reveal(), self.secret.reveal()))
        from .client import default_chain

        return default_chain(scope)


class Basic(CredentialProvider):
    """Keys written into the table's options."""

    identifier = "basic"

    key_id: Secret = option("accesskeyid", "Access key id.")
    secret: Secret = option("secretkey", "Secret access key.")

    def fetch(self, scope: Mapping[str, str]) -> Credentials:
        return Credentials(keys(self.key_id.reveal(), self.secret.reveal()))


class EnvVar(CredentialProvider):
    """AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the worker."""

    identifier = "env-var"

    def fetch(self, scope: Mapping[str, str]) -> Credentials:
        key_id = os.environ.get("AWS_ACCESS_KEY_ID")
        secret = os.environ.get("AWS_SECRET_ACCESS_KEY")
        if not key_id or not secret:
            raise PluginError(
                "aws.credentials.provider is 'ENV_VAR', but AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY are not both set where the task runs. Set them on every "
                "worker, for instance with 'spark.executorEnv.AWS_ACCESS_KEY_ID'."
            )
        return Credentials(keys(key_id, secret, os.environ.get("AWS_SESSION_TOKEN")))


class SysProp(CredentialProvider):
    """Java system properties aws.accessKeyId and aws.secretAccessKey, as far as Python sees them.

    A Python worker has no JVM of its own: the properties are read from the variables that hand
    them to one, such as JAVA_TOOL_OPTIONS='-Daws.accessKeyId=...'.
    """

    identifier = "sys-prop"

    def fetch(self, scope: Mapping[str, str]) -> Credentials:
        given = " ".join(os.environ.get(name, "") for name in _JVM_VARIABLES)
        found = dict(re.findall(r"-D(aws\.\w+)=(\S+)", given))
        secret = found.get("aws.secretAccessKey") or found.get("aws.secretKey")
        if "aws.accessKeyId" not in found or not secret:
            raise PluginError(
                "aws.credentials.provider is 'SYS_PROP', but none of "
                f"{', '.join(_JVM_VARIABLES)} sets -Daws.accessKeyId and -Daws.secretAccessKey "
                "where the task runs. Use 'ENV_VAR' instead, or set one of them on every worker."
            )
        token = found.get("aws.sessionToken")
        return Credentials(keys(found["aws.accessKeyId"], secret, token))


class Profile(CredentialProvider):
    """A named profile of an AWS credentials file on the worker."""

    identifier = "profile"

    path: str | None = option("path", "Credentials file; the SDK's own if unset.", default=None)
    name: str | None = option("name", "Profile; the SDK's default if unset.", default=None)

    def fetch(self, scope: Mapping[str, str]) -> Credentials:
        from .client import profile

        return profile(self.name, self.path)


def _session_problems(key: str, name: str) -> Iterator[Problem]:
    if not re.fullmatch(r"[\w+=,.@-]{2,64}", name, re.A):
        yield Problem(key, f"'{name}' is not 2 to 64 of letters, digits, '_' and '+=,.@-'")


class AssumeRole(CredentialProvider):
    """A role assumed through STS, with credentials that another provider finds."""

    identifier = "assume-role"
    option_prefix = "role."

    arn: str = option("arn", "ARN of the role to assume.")
    session_name: str = option("sessionName", "Name of the role session, 2 to 64 characters.")
    external_id: Secret | None = option("externalId", "External id of the role.", default=None)
    sts_endpoint: str | None = option(
        "stsEndpoint", "Endpoint of STS.", default=None, check=sts_endpoint_complaint
    )
    provider: CredentialProvider = option(
        "provider", "Who may assume the role; nests without limit.", default="auto", below=True
    )

    def problems(self) -> Iterator[Problem | str]:
        yield from _session_problems("sessionName", self.session_name)
        if self.external_id and not 2 <= len(self.external_id.reveal()) <= 1224:
            yield Problem("externalId", "must have 2 to 1224 characters")

    def fetch(self, scope: Mapping[str, str]) -> Credentials:
        from .client import assume_role

        # Nested roles share the outermost STS endpoint.
        inner = {**scope, "sts-endpoint": self.sts_endpoint or scope.get("sts-endpoint", "")}
        return assume_role(self, self.provider.fetch(inner), inner)


class WebIdentityToken(CredentialProvider):
    """A role assumed with an OIDC token read from a file, again before each renewal."""

    identifier = "web-identity-token"
    option_prefix = ""

    file: str | None = option(
        "webIdentityToken.file", "Token file; AWS_WEB_IDENTITY_TOKEN_FILE if unset.", default=None
    )
    arn: str | None = option("role.arn", "ARN of the role; AWS_ROLE_ARN if unset.", default=None)
    session_name: str | None = option(
        "role.sessionName", "Session name; AWS_ROLE_SESSION_NAME if unset.", default=None
    )
    sts_endpoint: str | None = option(
        "role.stsEndpoint", "Endpoint of STS.", default=None, check=sts_endpoint_complaint
    )

    def problems(self) -> Iterator[Problem | str]:
        if self.session_name is not None:
            yield from _session_problems("role.sessionName", self.session_name)

    def fetch(self, scope: Mapping[str, str]) -> Credentials:
        from .client import assume_role_with_token

        file = self.file or os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE")
        arn = self.arn or os.environ.get("AWS_ROLE_ARN")
        if not file or not arn:
            raise PluginError(
                "aws.credentials.provider is 'WEB_IDENTITY_TOKEN', which needs "
                "'aws.credentials.webIdentityToken.file' and 'aws.credentials.role.arn', or "
                "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN where the task runs."
            )
        name = self.session_name or os.environ.get("AWS_ROLE_SESSION_NAME") or "streamcore"
        inner = {**scope, "sts-endpoint": self.sts_endpoint or scope.get("sts-endpoint", "")}
        return assume_role_with_token(file, arn, name, inner)


class Custom(CredentialProvider):
    """A CredentialProvider class of yours, named by its dotted Python path.

    Its options follow the class's identifier, as in 'aws.credentials.custom.vault.path'. A
    provider that is a plugin of its own needs no class: name its identifier instead.
    """

    identifier = "custom"

    chosen: CredentialProvider = option(
        "class",
        "Dotted path of a CredentialProvider class.",
        example="streamcore_kinesis.credentials.Profile",
    )

    def fetch(self, scope: Mapping[str, str]) -> Credentials:
        return self.chosen.fetch(scope)
