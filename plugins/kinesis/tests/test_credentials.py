"""Credentials come from where the table says, on the worker, and are renewed in time."""

import base64
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest
import streamcore_formats
import streamcore_kinesis
from streamcore import (
    Column,
    ConnectionFailed,
    CredentialProvider,
    Credentials,
    OptionError,
    PluginError,
    Secret,
    Table,
    hookimpl,
    option,
)
from streamcore.claims import Provider
from streamcore.registry import Registry, installed
from streamcore.testing import CredentialsContract
from streamcore.testing.services import Sts
from streamcore_kinesis import probing
from streamcore_kinesis.client import kinesis as client_of
from streamcore_kinesis.credentials import KEY_ID, Auto, Basic, EnvVar, keys

NEW = {
    "stream.arn": "arn:aws:kinesis:us-east-1:123456789012:stream/orders",
    "aws.region": "us-east-1",
    "format": "json",
}
SCOPE = {"region": "us-east-1"}


def provider(**given):
    options = {f"aws.credentials.{key}": value for key, value in given.items()}
    return installed().build("connector", "kinesis", NEW | options).provider


@pytest.fixture(scope="module")
def sts():
    with Sts() as service:
        yield service


@pytest.fixture
def clean(monkeypatch):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    return monkeypatch


class TestBasic(CredentialsContract):
    plugin = Basic(key_id=Secret("AKIA1234"), secret=Secret("hush-hush"))


def test_nothing_set_means_the_default_chain(clean):
    assert isinstance(provider(), Auto)
    with pytest.raises(PluginError, match="the AWS default chain found no credentials"):
        provider().fetch(SCOPE)


def test_basic_keys_alone_are_enough():
    given = {"basic.accesskeyid": "id", "basic.secretkey": "secret"}
    found = provider(**given).fetch(SCOPE)
    assert found.values[KEY_ID].reveal() == "id"


def test_environment_variables_are_read_where_the_task_runs(clean):
    chosen = provider(provider="ENV_VAR")
    assert isinstance(chosen, EnvVar)
    with pytest.raises(PluginError, match="AWS_SECRET_ACCESS_KEY are not both set"):
        chosen.fetch(SCOPE)
    clean.setenv("AWS_ACCESS_KEY_ID", "id")
    clean.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert chosen.fetch(SCOPE).values[KEY_ID].reveal() == "id"


def test_system_properties_are_read_from_the_variables_that_set_them(clean):
    chosen = provider(provider="SYS_PROP")
    with pytest.raises(PluginError, match="sets -Daws.accessKeyId"):
        chosen.fetch(SCOPE)
    clean.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g -Daws.accessKeyId=id -Daws.secretAccessKey=secret")
    assert chosen.fetch(SCOPE).values[KEY_ID].reveal() == "id"


def test_profiles_come_from_the_file_named(tmp_path, clean):
    file = tmp_path / "credentials"
    file.write_text("[team]\naws_access_key_id = id\naws_secret_access_key = secret\n")
    given = {"provider": "PROFILE", "profile.path": str(file), "profile.name": "team"}
    assert provider(**given).fetch(SCOPE).values[KEY_ID].reveal() == "id"
    with pytest.raises(PluginError, match="aws.credentials.profile.name"):
        provider(**given | {"profile.name": "other"}).fetch(SCOPE)


def calls(sts):
    """What STS was asked since recording began, one call after the other."""
    with urlopen(f"{sts.endpoint_url}/moto-api/recorder/download-recording") as answer:
        entries = [json.loads(line) for line in answer.read().splitlines()]
    bodies = [base64.b64decode(each["body"]).decode() for each in entries]
    return [dict(parse_qsl(body)) for body in bodies]


@pytest.fixture
def recorded(sts):
    for step in ("reset-recording", "start-recording"):
        urlopen(Request(f"{sts.endpoint_url}/moto-api/recorder/{step}", method="POST")).close()
    return lambda: calls(sts)


ROLE = "arn:aws:iam::123456789012:role/reader"


def test_roles_are_assumed_through_sts_with_another_provider(sts, recorded):
    given = {
        "provider": "ASSUME_ROLE",
        "role.arn": ROLE,
        "role.sessionName": "session",
        "role.externalId": "outside",
        "role.stsEndpoint": sts.endpoint_url,
        "role.provider": "ASSUME_ROLE",
        "role.provider.role.arn": "arn:aws:iam::123456789012:role/base",
        "role.provider.role.sessionName": "inner",
        "role.provider.role.provider": "BASIC",
        "role.provider.role.provider.basic.accesskeyid": "id",
        "role.provider.role.provider.basic.secretkey": "secret",
    }
    found = provider(**given).fetch(SCOPE)
    assert found.expires is not None
    assert found.expires > datetime.now(UTC)
    assert found.values[KEY_ID].reveal().startswith("ASIA")
    said = ("RoleArn", "RoleSessionName", "ExternalId")
    assert [[call.get(name) for name in said] for call in recorded()] == [
        ["arn:aws:iam::123456789012:role/base", "inner", None],
        [ROLE, "session", "outside"],
    ]


def test_basic_keys_of_a_role_need_no_provider(clean):
    given = {
        "provider": "ASSUME_ROLE",
        "role.arn": ROLE,
        "role.sessionName": "session",
        "role.provider.basic.accesskeyid": "id",
        "role.provider.basic.secretkey": "secret",
    }
    assert provider(**given).provider.fetch(SCOPE).values[KEY_ID].reveal() == "id"


@pytest.mark.parametrize("kind", ["ASSUME_ROLE", "WEB_IDENTITY_TOKEN"])
@pytest.mark.parametrize("name", ["a", "a" * 65, "a b", "\N{LATIN SMALL LETTER E WITH ACUTE}" * 2])
def test_names_of_sessions_that_sts_refuses_are_refused_first(kind, name):
    given = {"provider": kind, "role.arn": ROLE}
    with pytest.raises(OptionError) as caught:
        provider(**given, **{"role.sessionName": name})
    (found,) = map(str, caught.value.problems)
    assert found == (
        f"aws.credentials.role.sessionName: '{name}' is not 2 to 64 of letters, digits, '_' and "
        "'+=,.@-'"
    )
    for good in ("ab", "a" * 64):
        provider(**given, **{"role.sessionName": good})


def test_a_token_in_a_file_assumes_a_role(sts, tmp_path, clean, recorded):
    file = tmp_path / "token"
    file.write_text("header.payload.signature")
    given = {
        "provider": "WEB_IDENTITY_TOKEN",
        "webIdentityToken.file": str(file),
        "role.arn": ROLE,
        "role.sessionName": "session",
        "role.stsEndpoint": sts.endpoint_url,
    }
    assert provider(**given).fetch(SCOPE).expires is not None
    with pytest.raises(PluginError, match="cannot be read: No such file"):
        provider(**given | {"webIdentityToken.file": str(tmp_path / "gone")}).fetch(SCOPE)
    with pytest.raises(PluginError, match="which needs"):
        provider(provider="WEB_IDENTITY_TOKEN").fetch(SCOPE)
    clean.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(file))
    clean.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/of-the-worker")
    clean.setenv("AWS_ROLE_SESSION_NAME", "worker")
    provider(**{key: given[key] for key in ("provider", "role.stsEndpoint")}).fetch(SCOPE)
    provider(**given).fetch(SCOPE)  # what is said outranks what is found
    said = ("RoleArn", "RoleSessionName", "WebIdentityToken")
    table = [ROLE, "session", "header.payload.signature"]
    worker = ["arn:aws:iam::123456789012:role/of-the-worker", "worker", "header.payload.signature"]
    assert [[call.get(name) for name in said] for call in recorded()] == [table, worker, table]


@pytest.mark.parametrize("fail_on_error", ["false", "true"])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("AUTO", "the AWS default chain found no credentials where the task runs"),
        ("ENV_VAR", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set where the task"),
        ("SYS_PROP", "sets -Daws.accessKeyId and -Daws.secretAccessKey where the task runs"),
        ("WEB_IDENTITY_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN where the task runs"),
    ],
)
def test_a_task_without_credentials_fails_before_it_writes(clean, kind, expected, fail_on_error):
    given = {"aws.credentials.provider": kind, "sink.fail-on-error": fail_on_error}
    table = Table((Column("n", "BIGINT"),), "t")
    writer = installed().build("connector", "kinesis", NEW | given).writer(table)
    with pytest.raises(PluginError) as caught:
        writer.write(iter([pa.RecordBatch.from_pydict({"n": [1]})]))
    assert f"aws.credentials.provider is '{kind}'" in str(caught.value)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_sts_that_does_not_answer_is_one_sentence():
    given = {
        "provider": "ASSUME_ROLE",
        "role.arn": "arn:aws:iam::123456789012:role/reader",
        "role.sessionName": "session",
        "role.stsEndpoint": "http://127.0.0.1:1",
        "role.provider": "BASIC",
        "role.provider.basic.accesskeyid": "id",
        "role.provider.basic.secretkey": "secret",
    }
    with pytest.raises(ConnectionFailed, match="role 'arn:.*' could not be assumed"):
        provider(**given).fetch(SCOPE)


class Hourly(CredentialProvider):
    """Gives keys that hold for an hour."""

    identifier = "hourly"

    def fetch(self, scope):
        fetched.append(scope["region"])
        return Credentials(keys("id", "secret"), datetime.now(UTC) + timedelta(hours=1))


class Short(CredentialProvider):
    """Gives keys that hold for a few seconds only."""

    identifier = "short"

    def fetch(self, scope):
        fetched.append(scope["region"])
        return Credentials(keys("id", "secret"), datetime.now(UTC) + timedelta(seconds=30))


fetched: list[str] = []


class Vault(CredentialProvider):
    """Gives what its options say, under the names it is told."""

    identifier = "vault"

    path: str = option("path", "Where it looks.")
    names: str = option("names", "What it calls them.", default="access-key-id,secret-key")

    def fetch(self, scope):
        return Credentials({name: Secret(self.path) for name in self.names.split(",")})


@hookimpl
def register_credentials():
    return [Vault]


def in_a_module(monkeypatch, name):
    """Lets a class of this file be named by a path."""
    monkeypatch.setitem(sys.modules, name, sys.modules[__name__])
    return f"{name}.Vault"


def test_a_class_of_ones_own_gets_its_options(monkeypatch):
    path = in_a_module(monkeypatch, "ours")
    given = {"provider": "CUSTOM", "custom.class": path, "custom.vault.path": "here"}
    assert provider(**given).fetch(SCOPE).values[KEY_ID].reveal() == "here"
    with pytest.raises(OptionError, match="custom.vault.path: required but missing"):
        provider(**{k: v for k, v in given.items() if "path" not in k})


def test_a_provider_that_another_package_adds_is_named_like_a_builtin():
    modules = [streamcore_formats, streamcore_kinesis, sys.modules[__name__]]
    registry = Registry(
        Provider(f"package-{n}", "1.0", f"it-{n}", lambda module=module: module)
        for n, module in enumerate(modules)
    )
    given = {"aws.credentials.provider": "vault", "aws.credentials.vault.path": "here"}
    chosen = registry.build("connector", "kinesis", NEW | given).provider
    client = client_of(chosen, "us-east-1", "http://127.0.0.1:1")
    assert client._request_signer._credentials.access_key == "here"


def test_credentials_by_other_names_are_one_sentence():
    with pytest.raises(
        PluginError, match="^the credential provider gave 'password', 'user', and AWS needs 'acce"
    ):
        client_of(Vault(path="x", names="user,password"), "us-east-1", "http://127.0.0.1:1")


def test_all_clients_of_a_process_share_what_is_renewed():
    before = len(fetched)
    for _ in range(20):
        client_of(Hourly(), "us-east-1", "http://127.0.0.1:1")
    client_of(Hourly(), "eu-west-1", "http://127.0.0.1:1")
    assert fetched[before:] == ["us-east-1", "eu-west-1"]


def test_tasks_of_a_process_share_a_client_until_their_keys_change():
    first, second = (client_of(Vault(path="here"), "us-east-1", "http://there") for _ in range(2))
    assert first is second
    assert client_of(Vault(path="elsewhere"), "us-east-1", "http://there") is not first
    assert client_of(Vault(path="here"), "us-east-1", "http://there", read_seconds=1) is not first


def test_a_process_that_was_forked_has_connections_of_its_own():
    ours = client_of(Vault(path="here"), "us-east-1", "http://there")
    child = os.fork()
    if not child:
        os._exit(client_of(Vault(path="here"), "us-east-1", "http://there") is ours)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client_of(Vault(path="here"), "us-east-1", "http://there") is ours


def test_keys_that_are_rotated_in_a_file_reach_a_query_that_runs(
    kinesis, kinesis_stream, options, job, tmp_path, monkeypatch, clean, caplog
):
    monkeypatch.setattr(probing, "_ASKED_AGAIN", 0)
    file = tmp_path / "credentials"
    given = {
        **{
            key: text
            for key, text in options(kinesis_stream(shards=1)).items()
            if "basic" not in key
        },
        "aws.credentials.provider": "PROFILE",
        "aws.credentials.profile.path": str(file),
        "source.shard.discovery.interval": "0 s",
    }
    used = []
    for key_id in ("123456789012", "210987654321"):
        file.write_text(f"[default]\naws_access_key_id={key_id}\naws_secret_access_key=x\n")
        if not used:
            run = job(given)
        run.step()
        used.append(run.reader._stream._caller.client._request_signer._credentials.access_key)
    assert used == ["123456789012", "210987654321"]
    file.unlink()
    run.step()  # with what was found before
    assert "reading goes on with the credentials found before: profile 'default' has" in caplog.text


def test_a_profile_whose_process_gives_keys_for_a_while_is_renewed(tmp_path, clean):
    script = tmp_path / "keys"
    until = datetime.now(UTC) + timedelta(minutes=20)
    keys = {"AccessKeyId": "id", "SecretAccessKey": "secret", "Expiration": until.isoformat()}
    script.write_text("#!/bin/sh\necho '" + json.dumps({"Version": 1} | keys) + "'\n")
    script.chmod(0o755)
    file = tmp_path / "config"
    file.write_text(f"[profile team]\ncredential_process = {script}\n")
    clean.setenv("AWS_CONFIG_FILE", str(file))
    given = {"provider": "PROFILE", "profile.name": "team"}
    assert provider(**given).fetch(SCOPE).expires == until


def test_credentials_are_renewed_before_they_expire_and_not_with_every_call():
    client = client_of(Short(), "us-east-1", "http://127.0.0.1:1")
    credentials, before = client._request_signer._credentials, len(fetched)
    credentials.get_frozen_credentials()
    assert len(fetched) == before
    credentials._expiry_time -= timedelta(seconds=20)
    credentials.get_frozen_credentials()
    assert len(fetched) == before + 1
