"""A secret shows itself nowhere: one canary, and every place it could leak to."""

import base64
import copy
import dataclasses
import json
import pickle
import traceback
from collections.abc import Mapping

import pytest
from streamcore import Connector, Format, OptionError, PluginError, Secret, option
from streamcore.registry import Provider, Registry
from streamcore.values import is_sensitive, masked, without_logins

CANARY = "canary-7f3a9c"


class Safe(Format):
    """A format with a secret."""

    identifier = "safe"

    token: Secret = option("token", "A token.")

    def problems(self):
        if self.token.reveal().startswith("canary"):
            raise RuntimeError(f"{self.token.reveal()} is not known")
        yield from ()


class Vault(Connector):
    """A connector with secrets of every sort."""

    identifier = "vault"

    pin: Secret = option(
        "pin", "Secret, though its key does not look it.", check=lambda pin: "is too short"
    )
    api_key_age: int = option("api-key", "A number under a key that looks secret.", default=1)
    properties: Mapping[str, str] = option("properties.*", "Passed on.")
    format: Format | None = option("format", "How values are encoded.", default=None)


class Holder(Connector):
    """A connector that accepts its secrets."""

    identifier = "holder"

    pin: Secret | None = option("pin", "A secret.", default=None)
    properties: Mapping[str, str] = option("properties.*", "Passed on.")


def hooks(*classes):
    import types

    from streamcore import hookimpl

    module = types.ModuleType("secret_plugins")
    by_kind = {"register_formats": Format, "register_connectors": Connector}
    for name, base in by_kind.items():
        found = [cls for cls in classes if issubclass(cls, base)]
        setattr(module, name, hookimpl(lambda found=found: found))
    return Registry([Provider("acme", "1.0", "acme", lambda: module)])


def leaks(text):
    encoded = base64.b64encode(CANARY.encode()).decode().rstrip("=")
    return CANARY in text or encoded in text


def test_a_secret_never_shows_itself():
    secret = Secret(CANARY)
    for text in (
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r}",
        f"{secret:>30}",
        "%s" % secret,  # noqa: UP031 - that way too
        repr([secret]),
        repr({"k": secret}),
    ):
        assert "***" in text
        assert not leaks(text)
    with pytest.raises(TypeError) as error:
        json.dumps({"k": secret})
    assert not leaks(str(error.value))
    assert not hasattr(secret, "__dict__")


def test_a_secret_is_equal_hashable_and_survives_the_trip_to_a_worker():
    secret = Secret(CANARY)
    assert pickle.loads(pickle.dumps(secret)) == secret == copy.deepcopy(secret)
    assert len({secret, Secret(CANARY)}) == 1
    assert secret != CANARY
    assert (bool(secret), bool(Secret(""))) == (True, False)


def test_a_configured_plugin_hides_its_secrets_also_those_in_maps():
    given = {"pin": CANARY, "properties.sasl.password": CANARY, "properties.client.id": "me"}
    plugin = hooks(Holder).build("connector", "holder", given)
    assert plugin.properties["sasl.password"] == Secret(CANARY)
    assert plugin.properties["client.id"] == "me"
    for text in (repr(plugin), str(plugin), f"{plugin}", repr(dataclasses.asdict(plugin))):
        assert not leaks(text)
    assert pickle.loads(pickle.dumps(plugin)) == plugin


def test_errors_name_the_key_and_hide_the_value():
    given = {
        "pin": CANARY,
        "api-key": CANARY,
        "format": "safe",
        "safe.token": CANARY,
        "unknown.password": CANARY,
    }
    with pytest.raises(OptionError) as error:
        hooks(Vault, Safe).build("connector", "vault", given)
    assert [str(problem) for problem in error.value.problems] == [
        "pin: '***' is too short",
        "api-key: '***' is not a whole number",
        "safe.*: format 'safe' could not be set up: RuntimeError: *** is not known",
        "unknown.password: unknown option",
    ]
    assert error.value.__cause__ is None
    assert not leaks(pickle.dumps(error.value).decode("latin-1"))


def test_a_secret_where_a_plugin_is_named_is_not_quoted():
    with pytest.raises(OptionError) as error:
        hooks(Vault).build("connector", "vault", {"pin": "1", "format": Secret(CANARY)})
    assert "format: no format called '***'." in str(error.value)


def test_a_traceback_that_prints_variables_shows_no_secret():
    given = {"pin": Secret(CANARY), "password": CANARY, "api-key": CANARY}
    with pytest.raises(OptionError) as error:
        hooks(Vault, Safe).build("connector", "vault", given)
    frames = traceback.TracebackException.from_exception(error.value, capture_locals=True)
    ours = [frame for frame in frames.stack if "/src/streamcore/" in frame.filename]
    assert len(ours) >= 2
    assert not any(leaks(str(frame.locals)) for frame in ours)


def test_a_plugin_that_cannot_be_pickled_fails_without_showing_its_secrets():
    class Local(Connector):
        """A class that pickle cannot find again."""

        identifier = "local"
        pin: Secret = option("pin", "A secret.")

    with pytest.raises((pickle.PicklingError, AttributeError)) as error:
        pickle.dumps(Local(pin=Secret(CANARY)))
    assert not leaks("".join(traceback.format_exception(error.value)))


def test_a_missing_plugin_is_named_without_its_options():
    with pytest.raises(PluginError) as error:
        hooks().build("connector", "nope", {"password": CANARY})
    assert not leaks(str(error.value))


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "properties.ssl.key.password",
        "properties.sasl.jaas.config",
        "aws.secret.access-key",
        "basic-auth.user-info",
        "value.avro-confluent.basic-auth.credentials-source-secret",
        "api-key",
        "apikey",
        "oauth.token",
        "service-key",
        "http-headers",
        "auth-params",
        "properties.ssl.keystore.key",
        "aws.credentials.basic.secretkey",
        "properties.sasl.password",
        "bearer-auth.token",
        "aws.private_key",
        "registry.user.info",
        "properties.ssl.key.pem",
    ],
)
def test_keys_that_carry_secrets_are_known(key):
    assert is_sensitive(key)
    assert is_sensitive(key.upper())
    assert masked(key, CANARY) == "***"


@pytest.mark.parametrize(
    "key",
    [
        "topic",
        "format",
        "properties.bootstrap.servers",
        "properties.ssl.keystore.location",
        "aws.credentials.provider",
        "properties.sasl.oauthbearer.token.endpoint.url",
        "key.fields",
        "properties.sasl.mechanism",
        "scan.startup.mode",
        "aws.credentials.role.arn",
        "aws.credentials.role.sessionName",
        "aws.credentials.webIdentityToken.file",
    ],
)
def test_keys_that_carry_none_are_shown(key):
    assert not is_sensitive(key)
    assert masked(key, "v") == "v"


def test_a_traceback_shows_no_secret_of_an_errors_cause():
    class Talkative(Format):
        """Its own code puts the secret into the error behind the error."""

        identifier = "talkative"

        token: Secret = option("token", "A token.")

        def problems(self):
            raise RuntimeError("cannot log in") from ValueError(self.token.reveal())

    with pytest.raises(OptionError) as caught:
        hooks(Talkative).build("format", "talkative", {"token": CANARY})
    shown = "".join(traceback.format_exception(caught.value))
    assert "RuntimeError: cannot log in" in shown
    assert not leaks(shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://me:pw@host:8081/path", "http://***@host:8081/path"),
        ("http://me@host", "http://***@host"),
        ("https://me:p@w@a, https://me:pw@b/", "https://***@a, https://***@b/"),
        ("http://me:pw@a:1,http://me:pw@b:1", "http://***@a:1,http://***@b:1"),
        ("http://me:p/w@host", "http://***@host"),
        ("no answer from 'http://me:p%40w@host'.", "no answer from 'http://***@host'."),
        ("http://host:8081/subjects/a@b", "http://host:8081/subjects/a@b"),
        ("http://host/a@b", "http://host/a@b"),
        ("me@host", "me@host"),
    ],
)
def test_a_url_is_shown_without_its_login(text, shown):
    assert without_logins(text) == shown == masked("url", text)


class Reaching(Connector):
    """A connector that is told where to go."""

    identifier = "reaching"

    url: str = option("url", "Where.", check=lambda url: f"is not a URL: {url}")
    count: int = option("count", "How many.", default=1)


def test_errors_quote_a_url_without_its_login():
    given = {"url": f"ftp://me:{CANARY}@host", "count": f"http://me:{CANARY}@host"}
    with pytest.raises(OptionError) as error:
        hooks(Reaching).build("connector", "reaching", given)
    assert [str(problem) for problem in error.value.problems] == [
        "url: 'ftp://***@host' is not a URL: ftp://***@host",
        "count: 'http://***@host' is not a whole number",
    ]


class Complaining(Connector):
    """A connector that quotes what it is told."""

    identifier = "complaining"

    url: str = option("url", "Where.")

    def problems(self):
        yield f"'{self.url}' is nowhere"


def test_what_a_plugin_says_of_its_options_together_quotes_no_login_either():
    with pytest.raises(OptionError, match=r"'http://\*\*\*@host' is nowhere"):
        hooks(Complaining).build("connector", "complaining", {"url": f"http://me:{CANARY}@host"})
