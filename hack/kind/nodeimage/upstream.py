"""What kind and kubeadm ask of a node image, read from them. Pure but for `images_of_kubeadm`."""

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.cluster import errors, shell

BASE_FILES = Path("images/base/files")
CONTAINERD_CONFIG = Path("etc/containerd/config.toml")
_NODE_IMAGE = Path("pkg/build/nodeimage")
_IMAGE = re.compile(r'"(docker\.io/kindest/([a-z-]+):[A-Za-z0-9._-]+)"')
_CRI = "io.containerd.grpc.v1.cri"


@dataclass(frozen=True, slots=True)
class Names:
    """The images that a node holds from its start, by what runs in them: `etcd`, ..."""

    images: dict[str, str]

    def image(self, program: str) -> str:
        """The image of a program; a ClusterError if nothing asks for one."""
        try:
            return self.images[program]
        except KeyError:
            raise errors.ClusterError(
                f"neither kind nor kubeadm asks for an image of {program}"
            ) from None


def own_images(source: Path) -> dict[str, str]:
    """The images of kind's own manifests, by their repository's last word."""
    texts = [path.read_text() for path in sorted((source / _NODE_IMAGE).glob("const_*.go"))]
    return {name: image for text in texts for image, name in _IMAGE.findall(text)}


def sandbox_image(configuration: str) -> str:
    """The image of containerd's sandboxes, which takes the place of kubeadm's."""
    return str(tomllib.loads(configuration)["plugins"][_CRI]["sandbox_image"])


def by_program(images: Iterable[str]) -> dict[str, str]:
    """Images by the last word of their repository."""
    return {image.rpartition(":")[0].rpartition("/")[2]: image for image in images}


def images_of_kubeadm(kubeadm: Path, version: str) -> Sequence[str]:
    """What kubeadm of that version of Kubernetes runs."""
    words = (str(kubeadm), "config", "images", "list", f"--kubernetes-version={version}")
    return shell.run(words).split()


def names(source: Path, kubeadm_images: Iterable[str]) -> Names:
    """Every image that the node image must hold."""
    sandbox = sandbox_image((source / BASE_FILES / CONTAINERD_CONFIG).read_text())
    return Names({**by_program(kubeadm_images), **own_images(source), "pause": sandbox})
