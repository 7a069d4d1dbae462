"""The images that a node holds from its start, as `kind build node-image` reads them.

kind takes four archives from a release of Kubernetes, and pulls whatever no archive names. So the
fourth holds all that is left.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from hack.cluster import images as local_images
from hack.cluster import releases
from hack.image import oci
from hack.kind.nodeimage import upstream

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
BUNDLE = "kube-proxy"
PATH = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",)
_BIN = "usr/local/bin"
_SHELL = "local-path-helper"
Files = list[oci.Entry]


def write(
    folder: Path,
    names: upstream.Names,
    programs: Mapping[str, Path],
    network: Iterable[oci.Entry],
    pause: bytes,
) -> None:
    """Write NAME.tar into a folder, for each name of a release's server tarball.

    `programs` are the programs by the image they make; `network` are the files that kube-proxy and
    the pods' network call.
    """
    for name in CONTROL_PLANE:
        image, files = _single(names, name, programs[name])
        oci.write(folder / f"{name}.tar", image, files)
    shared = list(network)
    oci.write_bundle(
        folder / f"{BUNDLE}.tar",
        [
            _single(names, BUNDLE, programs[BUNDLE], shared),
            _single(names, "kindnetd", programs["kindnetd"], shared),
            _single(names, "etcd", programs["etcd"]),
            _single(names, "local-path-provisioner", programs["local-path-provisioner"]),
            _coredns(names, programs["coredns"]),
            (_image(names, "pause", ("/pause",)), [oci.Entry("pause", pause)]),
            (_image(names, _SHELL, ("/bin/sh",)), local_images.busybox()),
        ],
    )


def _single(
    names: upstream.Names, name: str, program: Path, more: Iterable[oci.Entry] = ()
) -> tuple[oci.Image, Files]:
    """One program on nothing, or on a few files."""
    image = _image(names, name, (f"/{_BIN}/{name}",))
    return image, [oci.Entry(f"{_BIN}/{name}", program), oci.Entry("tmp/", mode=0o1777), *more]


def _coredns(names: upstream.Names, program: Path) -> tuple[oci.Image, Files]:
    """CoreDNS, which is given nothing but its arguments."""
    image = _image(names, "coredns", (), ("/coredns",))
    return image, [oci.Entry("coredns", program)]


def _image(
    names: upstream.Names,
    name: str,
    command: tuple[str, ...],
    entrypoint: tuple[str, ...] = (),
) -> oci.Image:
    architecture = releases.architecture()
    return oci.Image(names.image(name), architecture, command, PATH, entrypoint=entrypoint)
