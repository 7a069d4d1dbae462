"""Source of the webhook's certificate: a Secret that replicas share, or files.

With a Secret, the leader issues what is due and writes it there and into `caBundle`; every replica
serves what it reads there. Files (cert-manager, a user's Secret) are only read again; `caBundle`
is then left to their owner.
"""

import base64
import binascii
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from driver import clock, errors
from driver.kube import client, gvr
from driver.runtime.https import cert_files
from driver.webhook.tls import ca

_log = structlog.get_logger(__name__)
MANAGER = "ration-admission"


@dataclass(frozen=True, slots=True)
class CertificateConfig:
    """The Secret, the names that the certificate is for, and whose `caBundle` is ours."""

    namespace: str
    secret: str
    hosts: tuple[str, ...]
    configuration: str


class SecretCertificates:
    """Keeps the certificate in a Secret. `run` is a thread's target."""

    def __init__(
        self,
        kube: client.KubeClient,
        certificate_config: CertificateConfig,
        leads: Callable[[], bool],
        use: cert_files.Use,
        time: clock.Clock,
    ) -> None:
        self._kube = kube
        self._place = certificate_config
        self._leads = leads
        self._use = use
        self._clock = time
        self._served: ca.Bundle | None = None

    def run(self, stop: threading.Event) -> None:
        """Look every fifteen seconds until `stop` is set."""
        while not stop.is_set():
            try:
                self.reconcile()
            except errors.RationError as error:
                _log.warning("certificate not kept", error=str(error))
            self._clock.wait(stop, cert_files.RELOAD_S if self._served else cert_files.SOON_S)

    def reconcile(self) -> None:
        """Write what is due if this replica leads; serve what is stored.

        Raises:
            ApiError: the Secret or the configurations cannot be read or written.
            BadInput: the Secret holds no certificate, and this replica does not lead.
        """
        result = self._read()
        if self._leads():
            result = self._kept(result)
            self._publish(result[1])
        bundle = result[1]
        if bundle is not None and bundle != self._served:
            self._use(bundle.leaf.certificate, bundle.leaf.key)
            _log.info("certificate served", until=str(bundle.leaf.read.not_valid_after_utc))
            self._served = bundle

    def _read(self) -> tuple[gvr.Object | None, ca.Bundle | None]:
        """The Secret, and the bundle in it."""
        try:
            secret = self._kube.get(gvr.SECRETS, self._place.secret, self._place.namespace)
        except errors.NotFound:
            return None, None
        try:
            return secret, ca.parse_data(_decoded(secret.get("data") or {}))
        except errors.BadInput as error:
            # What is served goes on; the leader writes it anew.
            _log.warning("secret not readable", error=str(error))
            return secret, None

    def _kept(
        self, result: tuple[gvr.Object | None, ca.Bundle | None]
    ) -> tuple[gvr.Object | None, ca.Bundle]:
        """Return the bundle; a lost one is restored as served: the API server trusts it."""
        secret, bundle = result
        desired = ca.ensure_bundle(bundle or self._served, self._place.hosts, self._clock.now())
        return (secret, desired) if desired == bundle else (self._write(secret, desired), desired)

    def _write(self, previous: gvr.Object | None, bundle: ca.Bundle) -> gvr.Object:
        """Over exactly what was read. Raises Conflict, AlreadyExists: another leads by now."""
        name, namespace = self._place.secret, self._place.namespace
        meta: gvr.Object = {"name": name, "namespace": namespace}
        data = {key: _encoded(value) for key, value in ca.render_data(bundle).items()}
        body: gvr.Object = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque"}
        body["data"] = data
        if previous is None:
            created = body | {"metadata": meta}
            return self._kube.create(gvr.SECRETS, created, namespace, field_manager=MANAGER)
        meta = {**previous["metadata"], "managedFields": None}
        body |= {"metadata": meta, "type": previous.get("type", "Opaque")}
        return self._kube.replace(
            gvr.SECRETS, name, body, namespace=namespace, field_manager=MANAGER
        )

    def _publish(self, bundle: ca.Bundle | None) -> None:
        """Have both configurations believe the bundle's authorities, where they are installed."""
        desired = _encoded(bundle.trusted) if bundle else ""
        for kind in (gvr.VALIDATING_WEBHOOKS, gvr.MUTATING_WEBHOOKS):
            try:
                result = self._kube.get(kind, self._place.configuration)
            except errors.NotFound:
                continue
            webhooks = result.get("webhooks") or []
            if any(webhook["clientConfig"].get("caBundle") != desired for webhook in webhooks):
                self._believe(kind, webhooks, desired)

    def _believe(
        self, kind: gvr.Resource, webhooks: Sequence[Mapping[str, Any]], desired: str
    ) -> None:
        changed = [
            {"name": webhook["name"], "clientConfig": {"caBundle": desired}} for webhook in webhooks
        ]
        self._kube.patch(
            kind,
            self._place.configuration,
            {"webhooks": changed},
            kind=client.PatchType.STRATEGIC,
            field_manager=MANAGER,
        )
        _log.info("authority published", configuration=kind.plural)


def _decoded(data: Mapping[str, str]) -> dict[str, bytes]:
    try:
        return {key: base64.b64decode(value) for key, value in data.items()}
    except (binascii.Error, TypeError) as error:
        raise errors.BadInput("the webhook's Secret", str(error), "base64") from error


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
