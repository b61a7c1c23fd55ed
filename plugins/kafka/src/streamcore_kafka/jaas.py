"""Java's login strings (`sasl.jaas.config`), read without running the code they name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from streamcore import Secret

_SHADED = ("", "org.apache.flink.kafka.shaded.", "kafkashaded.")
_KAFKA = "org.apache.kafka.common.security."
PLAIN, SCRAM, OAUTHBEARER = (
    f"{_KAFKA}plain.PlainLoginModule",
    f"{_KAFKA}scram.ScramLoginModule",
    f"{_KAFKA}oauthbearer.OAuthBearerLoginModule",
)
MECHANISMS: Mapping[str, tuple[str, ...]] = {
    PLAIN: ("PLAIN",),
    SCRAM: ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    OAUTHBEARER: ("OAUTHBEARER",),
}
_WORD = re.compile(r"\s*([\w.$]+)")
_OPTION = re.compile(
    r"""\s*([\w.$-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""", re.DOTALL
)
_END = re.compile(r"\s*;?\s*\Z")


class JaasError(ValueError):
    """A login string that cannot be used; says why without showing it."""


@dataclass(frozen=True)
class Login:
    """The module a login string names, and the options it gives to it."""

    module: str
    options: Mapping[str, Secret]

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The SASL mechanisms this module can be meant for."""
        return MECHANISMS[self.module]

    def settings(self) -> dict[str, str | Secret]:
        """The same login in the words of the C library."""
        if self.module == OAUTHBEARER:
            return self._oauth()
        return {
            "sasl.username": self.options["username"].reveal(),
            "sasl.password": self.options["password"],
        }

    def _oauth(self) -> dict[str, str | Secret]:
        found: dict[str, str | Secret] = {}
        for name, key in (("clientId", "client.id"), ("scope", "scope")):
            if name in self.options:
                found[f"sasl.oauthbearer.{key}"] = self.options[name].reveal()
        if "clientSecret" in self.options:
            found["sasl.oauthbearer.client.secret"] = self.options["clientSecret"]
        extensions = {
            name.removeprefix("extension_"): value.reveal()
            for name, value in self.options.items()
            if name.startswith("extension_")
        }
        if extensions:
            pairs = ",".join(f"{name}={value}" for name, value in extensions.items())
            found["sasl.oauthbearer.extensions"] = pairs
        return found


def parse_jaas(text: str) -> Login:
    r"""Read a login string, its quotes written as `"` or, as SQL examples have them, as `\"`."""
    quote = re.search(r'\\*["\']', text)
    if quote and quote[0].startswith("\\"):
        text = text.replace('\\"', '"')
    named = _WORD.match(text)
    flag = _WORD.match(text, named.end()) if named else None
    if not named or not flag:
        raise JaasError('does not look like \'<module> required username="..." password="...";\'')
    module = _known_module(named[1])
    if flag[1].lower() not in ("required", "requisite", "sufficient", "optional"):
        raise JaasError(f"has '{flag[1]}' where 'required' was expected")
    options, position = {}, flag.end()
    while match := _OPTION.match(text, position):
        quoted = match[2] if match[2] is not None else match[3]
        value = match[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
        options[match[1]] = Secret(value)
        position = match.end()
    if not _END.match(text, position):
        raise JaasError(
            'cannot be read behind its first options; write each as name="value", one module only'
        )
    return _checked(Login(module, options))


def _known_module(name: str) -> str:
    for prefix in _SHADED:
        if name.startswith(prefix) and (module := name.removeprefix(prefix)) in MECHANISMS:
            return module
    if name.endswith("Krb5LoginModule"):
        raise JaasError(
            f"names '{name}', but Kerberos needs system libraries the client comes without; "
            "use SCRAM, OAUTHBEARER or a client certificate"
        )
    known = ", ".join(module.rpartition(".")[2] for module in MECHANISMS)
    raise JaasError(f"names '{name}', which is refused; only Kafka's own {known} are accepted")


def _checked(login: Login) -> Login:
    if login.options.get("tokenauth", Secret("")).reveal().lower() == "true":
        raise JaasError("asks for a delegation token ('tokenauth'), which the client cannot use")
    if any(name.startswith("unsecured") for name in login.options):
        raise JaasError(
            "asks for an unsecured token; for a test broker set "
            "'properties.enable.sasl.oauthbearer.unsecure.jwt' instead"
        )
    if login.module != OAUTHBEARER:
        for name in ("username", "password"):
            if name not in login.options:
                raise JaasError(f"gives no {name}")
    return login
