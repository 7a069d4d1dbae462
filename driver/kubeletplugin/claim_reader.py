"""Claims, read from the API server at the moment they are asked for."""

from driver.kube import client, resource
from driver.kubeletplugin import ports
from driver.resources import claims


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
        return claims.parse(self._kube.get(resource.RESOURCE_CLAIMS, ref.name, ref.namespace))
