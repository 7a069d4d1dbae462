"""From nothing to a node image: programs, Debian's packages, archives, and kind's own build.

Each part is kept once it is whole, so a build that was cut goes on where it stopped.
"""

import functools
import gzip
import itertools
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.cluster import (
    errors,
    images,
    prerequisites,
    programs,
    progress,
    releases,
    toolchain,
    versions,
)
from hack.image import oci
from hack.kind import docker, layout
from hack.kind.nodeimage import archives, rootfs, upstream

KEY_LABEL = "ration.dev/node-image"
"""Of what an image was made; kind's build carries it from the base to the result."""
REPOSITORY = "ration.local/kind-node"
_BASE = "ration.local/kind-base"
_ROOM = Path(__file__).resolve().parent
_OWN = _ROOM.parent / "programs"
_OWN_PROGRAMS = {"coredns": "coredns", "kindnet": "kindnetd"}
"""Programs of this repository, and which image each is in."""
_SETS = ("kind", "kubeadm", "crictl", "kind-cni", "local-path-provisioner")
_CNI = ("host-local", "loopback", "portmap", "ptp")
_RUNTIME = ("containerd", "containerd-shim-runc-v2", "ctr", "crictl")
_DEBIAN_LINES = 650
"""What debootstrap prints, about."""
_STAGES = ("Extracting", "Starting to build", "Finished building", "Building node", "Building in")
_COREDNS = "github.com/coredns/coredns "


@dataclass(frozen=True, slots=True)
class Recipe:
    """A node image to build, for a line of Kubernetes."""

    line: str

    @property
    def tools(self) -> versions.ToolSet:
        """Kubernetes itself."""
        return versions.load().kubernetes[self.line]

    def key(self) -> str:
        """Changes with every pin and with every file of this room."""
        catalogue = versions.load()
        sets = (*catalogue.of(self.line), *(catalogue.sets()[name] for name in _SETS))
        own = [programs.cached(_OWN / name).parent.name for name in _OWN_PROGRAMS]
        rooms = sorted(path for path in _ROOM.glob("*.py") if path.name != "__init__.py")
        parts = [
            *(toolchain.folder(tools).name.encode() for tools in sets),
            *(name.encode() for name in own),
            *(path.read_bytes() for path in rooms),
        ]
        return versions.cache_key(parts)

    def image(self) -> str:
        """The name under which Docker keeps it."""
        return f"{REPOSITORY}:{self.tools.version}-{self.key()}"


def check(recipe: Recipe) -> None:
    """Refuse a line whose kubeadm is not pinned, or the release that kubeadm does not ask for."""
    catalogue = versions.load()
    kubeadm = catalogue.sets()["kubeadm"]
    if kubeadm.version != recipe.tools.version:
        raise errors.ClusterError(
            f"a node image can be built for Kubernetes {catalogue.default} only: "
            "give one of another version by --node-image"
        )


def ensure(
    recipe: Recipe, daemon: docker.Docker, cache: layout.Cache, steps: progress.Steps
) -> str:
    """Build the node image, unless Docker has it; its name."""
    check(recipe)
    name, key = recipe.image(), recipe.key()
    if daemon.image_label(name, KEY_LABEL) == key:
        return name
    debian = _debian(cache, steps)
    tools = _programs(recipe, steps)
    with tempfile.TemporaryDirectory(dir=cache.parts, prefix=".node-") as scratch:
        tarball = _assemble(recipe, daemon, tools, debian, Path(scratch), steps)
        _run_kind(tools["kind"], daemon, name, key, tarball, steps)
    for stale in daemon.images(KEY_LABEL):
        if stale.name != name and stale.name.startswith((f"{REPOSITORY}:", f"{_BASE}:")):
            daemon.remove_image(stale.name)
    return name


def _programs(recipe: Recipe, steps: progress.Steps) -> dict[str, Path]:
    """Every program by its name."""
    catalogue = versions.load()
    places = dict(toolchain.ensure(recipe.line, steps))
    for name in _SETS:
        for program in catalogue.sets()[name].binaries:
            places[program] = toolchain.program(program, steps)
    for name in _OWN_PROGRAMS:
        if programs.cached(_OWN / name).exists():
            places[name] = programs.cached(_OWN / name)
            continue
        with steps.step(f"Build {name}", 80):
            places[name] = programs.ensure(_OWN / name)
    return places


def _debian(cache: layout.Cache, steps: progress.Steps) -> Path:
    """The archive of Debian's packages."""
    words = " ".join((rootfs.SUITE, *rootfs.PACKAGES, releases.architecture()))
    place = cache.parts / f"debian-{versions.cache_key([words.encode()])}"
    if not place.is_dir():
        prerequisites.require("debootstrap", "debootstrap", steps)
        with steps.step(f"Fetch Debian {rootfs.SUITE}", 100) as advance:
            count = itertools.count(1)

            def lines(_line: str) -> None:
                advance(min(next(count) / _DEBIAN_LINES, 0.95), "")

            toolchain.keep(place, functools.partial(rootfs.debian, lines=lines))
    return place / "rootfs.tar"


def _assemble(
    recipe: Recipe,
    daemon: docker.Docker,
    tools: Mapping[str, Path],
    debian: Path,
    scratch: Path,
    steps: progress.Steps,
) -> Path:
    """Import the base into Docker, and write what looks like a release's server tarball."""
    catalogue = versions.load()
    source = toolchain.source(catalogue.sets()["kind"])
    version = recipe.tools.version
    names = upstream.names(source, upstream.images_of_kubeadm(tools["kubeadm"], version))
    _check_coredns(names)
    with steps.step("Make the base of the node image", 15):
        root = scratch / "root"
        rootfs.unpack(debian, root)
        network = list(rootfs.network_files(root))
        server = scratch / "kubernetes" / "server" / "bin"
        server.mkdir(parents=True)
        in_images = {**tools, **{image: tools[name] for name, image in _OWN_PROGRAMS.items()}}
        archives.write(server, names, in_images, network, images.pause_program(scratch))
        rootfs.furnish(root, source, _placed(tools))
        rootfs.pack(root, scratch / "base.tar")
        oci.write_layer(scratch / "base-image.tar", _base(recipe), scratch / "base.tar")
        daemon.load(scratch / "base-image.tar")
    with steps.step("Pack the images of Kubernetes", 20):
        (scratch / "kubernetes" / "version").write_text(f"{version}\n")
        for name in ("kubeadm", "kubelet", "kubectl"):
            shutil.copy(tools[name], server / name)
        return _tarball(scratch)


def _base(recipe: Recipe) -> oci.Image:
    """A systemd that knows that it runs in a container, and is ended as systemd wants it."""
    return oci.Image(
        f"{_BASE}:{recipe.key()}",
        releases.architecture(),
        (),
        (*archives.PATH, "container=docker"),
        labels={KEY_LABEL: recipe.key()},
        entrypoint=("/usr/local/bin/entrypoint", "/sbin/init"),
        stop_signal="SIGRTMIN+3",
    )


def _tarball(scratch: Path) -> Path:
    """Pack `kubernetes/` as kind reads it: gzip, but stored, since it is unpacked at once."""
    path = scratch / "kubernetes-server.tar.gz"
    with (
        gzip.GzipFile(path, "wb", compresslevel=0, mtime=0) as stored,
        tarfile.open(fileobj=stored, mode="w|") as packed,
    ):
        packed.add(scratch / "kubernetes", "kubernetes")
    return path


def _run_kind(
    kind: Path, daemon: docker.Docker, name: str, key: str, tarball: Path, steps: progress.Steps
) -> None:
    daemon.remove_containers_of(f"{_BASE}:{key}")  # what a build that was killed left
    words = (str(kind), "build", "node-image", "--type=file", f"--base-image={_BASE}:{key}")
    seen: set[str] = set()
    with steps.step("Have kind build the node image", 60) as advance:

        def lines(line: str) -> None:
            seen.update(stage for stage in _STAGES if line.startswith(stage))
            advance(0.9 * len(seen) / len(_STAGES), "")

        rootfs.follow((*words, f"--image={name}", str(tarball)), lines, env=daemon.environment())


def _placed(tools: Mapping[str, Path]) -> dict[str, Path]:
    """Programs of the node itself, by their paths in it."""
    return {
        **{f"usr/local/bin/{name}": tools[name] for name in _RUNTIME},
        **{f"opt/cni/bin/{name}": tools[name] for name in _CNI},
    }


def _check_coredns(names: upstream.Names) -> None:
    wanted = names.image("coredns").rpartition(":")[2]
    if f"{_COREDNS}{wanted}\n" not in (_OWN / "coredns" / "go.mod").read_text():
        raise errors.ClusterError(
            f"kubeadm asks for CoreDNS {wanted}: pin it in hack/kind/programs/coredns/go.mod"
        )
