"""The only place that imports boto3: clients, credentials, and what their errors mean."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.credentials import Credentials as Fixed
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    EventStreamError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
    SSLError,
)
from botocore.loaders import create_loader
from botocore.parsers import ResponseParserError
from botocore.session import get_session
from streamcore import ConnectionFailed, CredentialProvider, Credentials, PluginError, Secret
from streamcore.values import without_logins
from urllib3.exceptions import HTTPError
from urllib3.exceptions import ReadTimeoutError as SubscriptionTimeout

from . import wire
from .credentials import KEY_ID, SECRET_KEY, TOKEN, keys

if TYPE_CHECKING:
    from .credentials import AssumeRole

CONNECT_SECONDS = 10
READ_SECONDS = 70
RENEW_BEFORE = timedelta(minutes=5)


def kinesis(
    provider: CredentialProvider,
    region: str | None,
    endpoint: str | None,
    *,
    verify: bool = True,
    connections: int = 32,
    read_seconds: float = READ_SECONDS,
) -> Any:
    """A Kinesis client whose credentials are fetched here and renewed before they expire.

    Calls with the same arguments and credentials share a client: its connections stay open from
    one task of a process to the next.
    """
    region = region or "us-east-1"
    found = _credentials(provider, {"region": region})
    return _client(found, region, _address(endpoint), verify, connections, read_seconds)


@functools.lru_cache(maxsize=16)
def _client(
    credentials: Any,
    region: str,
    address: str | None,
    verify: bool,
    connections: int,
    read_seconds: float,
) -> Any:
    session = get_session()
    session.register_component("data_loader", _loader())
    session._credentials = credentials
    client = boto3.Session(botocore_session=session).client(
        "kinesis",
        region_name=region,
        endpoint_url=address,
        verify=verify,
        config=Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=read_seconds,
            max_pool_connections=connections,
            # Our own retries know the limits of each call; the SDK's would hide them.
            retries={"max_attempts": 0, "mode": "standard"},
            user_agent_extra="streamcore",
        ),
    )
    if client.meta.service_model.resolved_protocol == "json":  # what wire.py speaks
        wire.register(client.meta.events)
    return client


if hasattr(os, "register_at_fork"):  # connections belong to one process
    os.register_at_fork(after_in_child=_client.cache_clear)


@functools.lru_cache(maxsize=16)
def _fixed(key_id: str, secret: str, token: str | None) -> Fixed:
    """The same keys are the same object, so that those who use them share a client."""
    return Fixed(key_id, secret, token)


@functools.cache
def _loader() -> Any:
    """The SDK's descriptions of services, read once and not for every client."""
    return create_loader()


_renewed: dict[Any, Any] = {}
_renewing = threading.Lock()


def _credentials(provider: CredentialProvider, scope: Mapping[str, str]) -> Any:
    """What the provider finds; what it renews is kept, for all clients of this process."""
    try:
        key = (provider, *sorted(scope.items()))
        hash(key)
    except TypeError:  # a provider with a map of options has no hash, and is asked every time
        return _fetched(provider, scope)
    with _renewing:
        kept = _renewed.get(key)
        if kept is None:
            kept = _fetched(provider, scope)
            if isinstance(kept, RefreshableCredentials):
                _renewed[key] = kept
        return kept


def _fetched(provider: CredentialProvider, scope: Mapping[str, str]) -> Any:
    first = provider.fetch(scope)
    if first.expires is None:
        return _fixed(*_plain(first))

    def fetch(found: Credentials | None = None) -> dict[str, str]:
        fresh = found or provider.fetch(scope)
        key_id, secret, token = _plain(fresh)
        expires = fresh.expires.isoformat() if fresh.expires else ""
        return {
            "access_key": key_id,
            "secret_key": secret,
            "token": token or "",
            "expiry_time": expires,
        }

    # What lives no longer than that would be renewed with every call.
    left = max(0.0, (first.expires - datetime.now(UTC)).total_seconds())
    return RefreshableCredentials.create_from_metadata(
        fetch(first),
        refresh_using=fetch,
        method="streamcore",
        advisory_timeout=int(min(RENEW_BEFORE.total_seconds(), left / 2)),
        mandatory_timeout=int(min(60, left / 4)),
    )


def _plain(found: Credentials) -> tuple[str, str, str | None]:
    if not {KEY_ID, SECRET_KEY} <= set(found.values):
        names = ", ".join(f"'{name}'" for name in sorted(found.values)) or "nothing"
        raise PluginError(
            f"the credential provider gave {names}, and AWS needs '{KEY_ID}' and '{SECRET_KEY}', "
            f"with '{TOKEN}' for a session. Set 'aws.credentials.provider' to one that gives these."
        )
    token = found.values.get(TOKEN)
    return (
        found.values[KEY_ID].reveal(),
        found.values[SECRET_KEY].reveal(),
        token.reveal() if token else None,
    )


# --- where credentials come from ---------------------------------------------------


def default_chain(scope: Mapping[str, str]) -> Credentials:
    """What the SDK finds by itself."""
    found = boto3.Session().get_credentials()
    if found is None:
        raise PluginError(
            "aws.credentials.provider is 'AUTO', and the AWS default chain found no credentials "
            "where the task runs: no environment variables, profile, container or instance role. "
            "Name a provider: 'streamcore describe credentials' lists them."
        )
    return _found(found)


def profile(name: str | None, path: str | None) -> Credentials:
    """A profile of a credentials file."""
    session = get_session({"profile": (None, None, name, None)})
    if path:
        session.set_config_variable("credentials_file", os.path.expanduser(path))
    try:
        found = session.get_credentials()
    except ProfileNotFound as error:
        raise PluginError(f"aws.credentials.profile.name: {error}") from error
    if found is None:
        where = path or "the default credentials file"
        raise PluginError(f"profile '{name or 'default'}' has no credentials in {where}.")
    return _found(found)


def _found(found: Any) -> Credentials:
    """What the SDK found; a process or a role it asked for them says when they expire."""
    frozen = found.get_frozen_credentials()
    expires = getattr(found, "_expiry_time", None)
    return Credentials(keys(frozen.access_key, frozen.secret_key, frozen.token), expires)


def assume_role(role: AssumeRole, base: Credentials, scope: Mapping[str, str]) -> Credentials:
    """Ask STS for a role with credentials another provider found."""
    key_id, secret, token = _plain(base)
    sts = _sts(scope, key_id, secret, token)
    extra = {"ExternalId": role.external_id.reveal()} if role.external_id else {}
    return _from_sts(
        lambda: sts.assume_role(RoleArn=role.arn, RoleSessionName=role.session_name, **extra),
        f"role '{role.arn}' could not be assumed",
    )


def assume_role_with_token(file: str, arn: str, name: str, scope: Mapping[str, str]) -> Credentials:
    """Ask STS for a role with the OIDC token in a file."""
    try:
        with open(file, encoding="utf-8") as content:
            token = Secret(content.read().strip())
    except OSError as error:
        raise PluginError(
            f"aws.credentials.webIdentityToken.file: '{file}' cannot be read: {error.strerror}."
        ) from error
    sts = _sts(scope, "", "", None)
    return _from_sts(
        lambda: sts.assume_role_with_web_identity(
            RoleArn=arn, RoleSessionName=name, WebIdentityToken=token.reveal()
        ),
        f"role '{arn}' could not be assumed with the token in '{file}'",
    )


def _address(endpoint: str | None) -> str | None:
    """A URL without its login: the SDK signs requests and sends none, but its errors tell it."""
    return without_logins(endpoint).replace("://***@", "://") if endpoint else None


def _sts(scope: Mapping[str, str], key_id: str, secret: str, token: str | None) -> Any:
    return boto3.Session().client(
        "sts",
        region_name=scope["region"],
        endpoint_url=_address(scope.get("sts-endpoint")),
        aws_access_key_id=key_id or "none",
        aws_secret_access_key=secret or "none",
        aws_session_token=token,
        config=Config(connect_timeout=CONNECT_SECONDS, read_timeout=30),
    )


def _from_sts(call: Callable[[], Any], trouble: str) -> Credentials:
    try:
        given = call()["Credentials"]
    except (ClientError, BotoCoreError) as error:
        raise ConnectionFailed(f"{trouble}: {error}") from error
    expires: datetime = given["Expiration"]
    found = keys(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
    return Credentials(found, expires)


# --- what errors mean -----------------------------------------------------------------

PASSING = {
    "ProvisionedThroughputExceededException",
    "LimitExceededException",
    "ResourceInUseException",
    "InternalFailure",
    "InternalFailureException",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "KMSThrottlingException",
    "RequestTimeout",
    "RequestTimeoutException",
}
_HINTS = {
    "ProvisionedThroughputExceededException": "Other readers or writers use up what a shard "
    "allows: add shards, or read with a throughput of its own ('EFO').",
    "ResourceNotFoundException": "Check the stream's name, account and region.",
    "AccessDeniedException": "Check the policy of the credentials in use.",
    "UnrecognizedClientException": "Check the access key id, and that it belongs to this region.",
    "InvalidSignatureException": "Check the secret access key.",
    "ExpiredTokenException": "The session has ended: choose a provider that renews it.",
    "IncompleteSignature": "Check the access key id and the secret access key.",
}


def code_of(error: Exception) -> str:
    """The service's error code; empty for errors that never reached the service."""
    return str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""


def is_passing(error: Exception) -> bool:
    """Whether the same call may go through a moment later."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return code_of(error) in PASSING or int(status) >= 500
    return is_unreached(error) or isinstance(error, IncompleteReadError | HTTPClientError)


def is_silence(error: Exception) -> bool:
    """Whether the service took the call and never answered, or stopped in the middle of it."""
    return isinstance(error, ReadTimeoutError | SubscriptionTimeout)


def is_unreached(error: Exception) -> bool:
    """Whether nobody took the call."""
    return isinstance(error, EndpointConnectionError | ConnectTimeoutError)


def is_broken_stream(error: Exception) -> bool:
    """Whether a subscription broke off, which another one may go on from."""
    if isinstance(error, EventStreamError):
        return code_of(error) != "AccessDeniedException"
    return isinstance(error, ResponseParserError | HTTPError | OSError | AttributeError)


def explain(error: Exception, what: str, region: str | None, endpoint: str | None) -> Exception:
    """One sentence a user can act on."""
    where = without_logins(endpoint or f"region '{region}'")
    if isinstance(error, ClientError):
        code = code_of(error)
        said = error.response["Error"].get("Message", "")
        return ConnectionFailed(
            f"{what} failed at {where}: {code}: {said} {_HINTS.get(code, '')}".rstrip()
        )
    if is_unreached(error):
        return ConnectionFailed(
            f"{what} failed: nothing answers at {where}. Check 'aws.endpoint', 'aws.region' and "
            "the network between the worker and the service."
        )
    if isinstance(error, SSLError):
        return ConnectionFailed(
            f"{what} failed at {where}: {without_logins(str(error))}. Name the authority that "
            "signed the certificate in AWS_CA_BUNDLE where the task runs."
        )
    if isinstance(error, NoCredentialsError):
        return ConnectionFailed(f"{what} failed at {where}: no credentials were found.")
    return ConnectionFailed(f"{what} failed at {where}: {without_logins(str(error))}")
