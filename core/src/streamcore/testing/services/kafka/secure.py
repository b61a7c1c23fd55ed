"""A Kafka broker that asks who you are: SASL over TLS, client certificates, access lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from ..certificates import Authority, Identity
from ..process import HOST, Workspace, free_port
from .cluster import KafkaBroker
from .listeners import Listener

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USERS = {"admin": "admin-secret", "alice": "alice-secret"}


class SecureKafkaBroker(KafkaBroker):
    """Users log in by password or certificate; only `admin` may do everything unasked.

    A plain listener, `direct_servers`, is left for the checks around a test.
    """

    def __init__(
        self,
        users: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        open_to_all: bool = False,
        server_host: str = HOST,
        server_days: float = 30,
    ) -> None:
        super().__init__(properties)
        self.users = dict(USERS if users is None else users)
        self._open_to_all = open_to_all
        self._server_host, self._server_days = server_host, server_days
        self._ports: dict[str, int] = {}
        self._files: Workspace | None = None

    @property
    def bootstrap_servers(self) -> str:
        """SASL over TLS: the listener most real clusters have."""
        return self.servers("SASL_SSL")

    def servers(self, protocol: str) -> str:
        """The listener of a protocol: SASL_SSL, SASL_PLAINTEXT, or SSL with client certificates."""
        return f"{HOST}:{self._ports[protocol]}"

    def start(self) -> Self:
        self._files = Workspace("certificates")
        self.authority = Authority(self._files.path)
        self._server = self.authority.issue(
            "broker", host=self._server_host, days=self._server_days
        )
        return super().start()

    def stop(self) -> None:
        super().stop()
        if self._files is not None:
            self._files.remove()

    def certificate(self, user: str) -> Identity:
        """A client certificate that the SSL listener takes for this user."""
        return self.authority.issue(user)

    @property
    def trust(self) -> Path:
        """The PEM file clients need to trust the broker."""
        return self.authority.trust

    def client_config(
        self, user: str = "admin", mechanism: str = "SCRAM-SHA-256", password: str | None = None
    ) -> dict[str, str]:
        """librdkafka configuration that logs in over TLS."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": self.users.get(user, "") if password is None else password,
            "ssl.ca.location": str(self.trust),
        }

    def certificate_config(self, user: str = "admin") -> dict[str, str]:
        """librdkafka configuration that shows a client certificate."""
        identity = self.certificate(user)
        return {
            "bootstrap.servers": self.servers("SSL"),
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.trust),
            "ssl.certificate.location": str(identity.certificate),
            "ssl.key.location": str(identity.key),
        }

    def grant(self, user: str, *operations: str, topic: str = "*", group: str = "*") -> None:
        """Let a user do these operations (all, if none is named) on a topic and a group.

        With all of them come transactions under any id.
        """
        self._access_list(user, operations or ("ALL",), topic, group, "ALLOW")

    def deny(self, user: str, *operations: str, topic: str = "*", group: str = "*") -> None:
        """Keep a user from these operations, whatever was granted."""
        self._access_list(user, operations or ("ALL",), topic, group, "DENY")

    def set_password(self, user: str, password: str) -> None:
        """Change the SCRAM credentials of a user."""
        from confluent_kafka import admin as api

        client = self.admin()
        changes = [
            api.UserScramCredentialUpsertion(
                user, api.ScramCredentialInfo(mechanism, 4096), password.encode()
            )
            for mechanism in (api.ScramMechanism.SCRAM_SHA_256, api.ScramMechanism.SCRAM_SHA_512)
        ]
        for change in changes:
            client.alter_user_scram_credentials([change])[user].result()
        self.users[user] = password

    def _access_list(
        self, user: str, operations: Sequence[str], topic: str, group: str, permission: str
    ) -> None:
        from confluent_kafka import admin as api

        client = self.admin()
        resources = {
            api.ResourceType.TOPIC: (topic, {*api.AclOperation.__members__}),
            api.ResourceType.GROUP: (group, {"ALL", "READ", "DESCRIBE"}),
            api.ResourceType.TRANSACTIONAL_ID: ("*", {"ALL"}),
        }
        bindings = [
            api.AclBinding(
                kind,
                name,
                api.ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                api.AclOperation[operation],
                api.AclPermissionType[permission],
            )
            for kind, (name, fitting) in resources.items()
            for operation in fitting.intersection(operations)
        ]
        for done in client.create_acls(bindings).values():
            done.result()

    def _more_listeners(self) -> Sequence[Listener]:
        self._ports = {name: free_port() for name in ("SASL_SSL", "SASL_PLAINTEXT", "SSL")}
        return [Listener(name, port, name) for name, port in self._ports.items()]

    def _more_properties(self) -> Mapping[str, str]:
        logins = " ".join(f'user_{name}="{secret}"' for name, secret in self.users.items())
        plain = f"org.apache.kafka.common.security.plain.PlainLoginModule required {logins};"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        jaas = {
            f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config": plain
            if mechanism == "PLAIN"
            else scram
            for name in ("sasl_ssl", "sasl_plaintext")
            for mechanism in MECHANISMS
        }
        return {
            **jaas,
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._server.pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",  # the plain listener logs nobody in
            "allow.everyone.if.no.acl.found": str(self._open_to_all).lower(),
        }

    def _format_arguments(self) -> Sequence[str]:
        return [
            argument
            for name, secret in self.users.items()
            for mechanism in MECHANISMS
            if mechanism != "PLAIN"
            for argument in ("--add-scram", f"{mechanism}=[name={name},password={secret}]")
        ]
