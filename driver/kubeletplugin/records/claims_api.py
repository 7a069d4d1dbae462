"""Claims, read from the API server at the moment they are asked for, and what we say of them."""

from collections.abc import Mapping

from driver import names
from driver.kube import client, gvr
from driver.kubeletplugin import ports
from driver.resources.dra import claims


class KubeClaimReader:
    """`ports.ClaimReader` on the API server."""

    def __init__(self, kube: client.KubeClient) -> None:
        self._kube = kube

    def read(self, ref: ports.ClaimRef) -> claims.Claim:
        """The claim of that name, whatever its UID.

        Raises:
            ApiError: NotFound when there is none.
            BadInput: what the server holds is no claim that we can read.
        """
        return claims.parse(self._kube.get(gvr.RESOURCE_CLAIMS, ref.name, ref.namespace))


class KubeClaimStatus(KubeClaimReader):
    """`ports.ClaimStatus` on the API server."""

    def apply(self, ref: ports.ClaimRef, body: Mapping[str, object]) -> None:
        """Apply to the claim's status under the plugin's name; what it says is taken by force.

        Raises:
            ApiError: Conflict when the claim has changed since, or is another one by now.
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
