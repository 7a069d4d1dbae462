"""Claims read from the API server on request, and their status."""

from collections.abc import Mapping

from driver import names
from driver.kube import client, gvr
from driver.kubeletplugin import ports
from driver.resources.dra import claims


class KubeClaimReader:
    """Implements `ports.ClaimReader` on the API server."""

    def __init__(self, kube: client.KubeClient) -> None:
        self._kube = kube

    def read(self, ref: ports.ClaimRef) -> claims.Claim:
        """Return the claim of that name, whatever its UID.

        Raises:
            ApiError: NotFound if there is none.
            BadInput: the server's object is no claim that can be read.
        """
        return claims.parse(self._kube.get(gvr.RESOURCE_CLAIMS, ref.name, ref.namespace))


class KubeClaimStatus(KubeClaimReader):
    """Implements `ports.ClaimStatus` on the API server."""

    def apply(self, ref: ports.ClaimRef, body: Mapping[str, object]) -> None:
        """Apply to the claim's status with the plugin's field manager, forced.

        Raises:
            ApiError: Conflict if the claim has changed since, or is another one by now.
        """
        self._kube.patch(
            gvr.RESOURCE_CLAIMS,
            ref.name,
            body,
            namespace=ref.namespace,
            subresource="status",
            kind=client.PatchType.APPLY,
            field_manager=names.PLUGIN_FIELD_MANAGER,
            force=True,
        )
