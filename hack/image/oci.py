"""OCI image archives (image-spec v1.1), one uncompressed layer each; of the same files the same.

containerd imports them as they are (`ctr -n k8s.io images import FILE`), kind too (`kind load
image-archive FILE`), and Docker: `docker load` reads `manifest.json`, which lies beside the index.
"""

import contextlib
import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

_CHUNK = 1 << 20
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_NAME = "io.containerd.image.name"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
MANIFEST = "manifest.json"
"""Names the parts of the archive for `docker load`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a layer: `content` is bytes, a file to copy, or a symbolic link's target.

    A name that ends with a slash is a folder.
    """

    name: str
    content: bytes | Path | str = b""
    mode: int = 0o755

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return isinstance(self.content, str)


@dataclass(frozen=True, slots=True)
class Image:
    """What runs in it: `name` as pods write it, `user` as `uid:gid` (empty: root).

    `command` are the arguments of `entrypoint`, or the program itself where there is none.
    """

    name: str
    architecture: str
    command: tuple[str, ...]
    environment: tuple[str, ...] = ("PATH=/usr/bin:/bin",)
    user: str = ""
    labels: Mapping[str, str] | None = None
    entrypoint: tuple[str, ...] = ()
    stop_signal: str = ""


@dataclass(frozen=True, slots=True)
class Described:
    """One image of an archive: its manifest's and configuration's bytes, and its layer's file."""

    image: Image
    config: bytes
    manifest: bytes
    layer: Path
    layer_digest: str

    @property
    def digest(self) -> str:
        """The manifest's, by which registries and runtimes name the image."""
        return _digest(self.manifest)

    def blobs(self) -> list[Entry]:
        """The files of the archive that are this image's own."""
        parts = ((_digest(self.config), self.config), (self.digest, self.manifest))
        return [
            Entry(_blob(self.layer_digest), self.layer),
            *(Entry(_blob(digest), content) for digest, content in parts),
        ]

    def index_entry(self) -> dict[str, object]:
        """Describe it for the index of an OCI layout."""
        return {
            **_descriptor(_MANIFEST, self.manifest),
            "annotations": {_NAME: reference(self.image.name)},
            "platform": {"architecture": self.image.architecture, "os": "linux"},
        }

    def docker_entry(self) -> dict[str, object]:
        """Describe it for `docker load`, whose older versions read nothing else."""
        return {
            "Config": _blob(_digest(self.config)),
            "RepoTags": [self.image.name],
            "Layers": [_blob(self.layer_digest)],
        }


def write(path: Path, image: Image, files: Iterable[Entry]) -> str:
    """Write the archive; the digest of its manifest. The layer lies beside it meanwhile."""
    with _packed(path, files) as layer:
        return write_layer(path, image, layer)


def write_layer(path: Path, image: Image, layer: Path) -> str:
    """Write the archive of an image whose layer is a tar already; the digest of its manifest."""
    described = _describe(image, layer)
    more = Entry(MANIFEST, _json([described.docker_entry()]))
    _pack_archive(path, [described], [more])
    return described.digest


def write_bundle(path: Path, images: Iterable[tuple[Image, Iterable[Entry]]]) -> None:
    """Write several images into one archive, in the form that `kind build node-image` reads.

    kind takes the names from `repositories`, where no `manifest.json` precedes it, and has
    containerd import the archive by its index.
    """
    with contextlib.ExitStack() as stack:
        parts = [
            _describe(image, stack.enter_context(_packed(path.with_suffix(f".{number}"), files)))
            for number, (image, files) in enumerate(images)
        ]
        names: dict[str, dict[str, str]] = {}
        for part in parts:
            repository, _, tag = part.image.name.rpartition(":")
            names.setdefault(repository, {})[tag] = part.digest.removeprefix("sha256:")
        _pack_archive(path, parts, [Entry("repositories", _json(names))])


def digest_of(path: Path) -> str:
    """Read the manifest's digest of an archive that holds one image."""
    return str(_entry(path)["digest"])


def reference(name: str) -> str:
    """A name in full, as runtimes keep it: without a registry's host it is one of Docker Hub.

    containerd keeps what an archive says, and a kubelet asks for the name in full
    (github.com/distribution/reference).
    """
    host, slash, _ = name.partition("/")
    if slash and ("." in host or ":" in host or host == "localhost"):
        return name
    return f"docker.io/{name}" if slash else f"docker.io/library/{name}"


def name_of(path: Path) -> str:
    """Read the name of an archive that holds one image, in full."""
    return str(_entry(path)["annotations"][_NAME])


def _entry(path: Path) -> Mapping[str, Any]:
    with tarfile.open(path) as packed:
        index = packed.extractfile("index.json")
        if index is None:
            raise ValueError(f"{path}: index.json is no file")
        (entry,) = json.load(index)["manifests"]
        return dict(entry)


@contextlib.contextmanager
def _packed(path: Path, files: Iterable[Entry]) -> Iterator[Path]:
    """The layer of an archive, beside it for a while."""
    layer = path.with_suffix(f"{path.suffix}.layer")
    try:
        with layer.open("wb") as out:
            pack(out, files)
        yield layer
    finally:
        layer.unlink(missing_ok=True)


def _pack_archive(path: Path, images: Iterable[Described], more: Iterable[Entry]) -> None:
    parts = list(images)
    index = _json({"schemaVersion": 2, "manifests": [part.index_entry() for part in parts]})
    blobs = {entry.name: entry for part in parts for entry in part.blobs()}
    with path.open("wb") as out:
        pack(
            out,
            [
                Entry("oci-layout", _json({"imageLayoutVersion": "1.0.0"})),
                Entry("index.json", index),
                *more,
                *blobs.values(),
            ],
        )


def pack(out: BinaryIO | gzip.GzipFile, files: Iterable[Entry]) -> None:
    """A tar of the files by name, owned by root, of no date."""
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as packed:
        for one in sorted(files, key=lambda one: one.name):
            _add(packed, one)


def _add(packed: tarfile.TarFile, one: Entry) -> None:
    info = tarfile.TarInfo(one.name.rstrip("/"))
    info.mode = one.mode
    content: BinaryIO | None = None
    match one.content:
        case _ if one.name.endswith("/"):
            info.type = tarfile.DIRTYPE
        case str() as target:
            info.type, info.linkname = tarfile.SYMTYPE, target
        case Path() as source:
            info.size = source.stat().st_size
            content = source.open("rb")
        case bytes() as data:
            info.size = len(data)
            content = io.BytesIO(data)
    with content or contextlib.nullcontext():
        packed.addfile(info, content)


def _describe(image: Image, layer: Path) -> Described:
    digest = _digest_of(layer)
    config = _json(
        {
            "architecture": image.architecture,
            "os": "linux",
            "config": {
                "Cmd": list(image.command),
                "Env": list(image.environment),
                **({"Entrypoint": list(image.entrypoint)} if image.entrypoint else {}),
                **({"User": image.user} if image.user else {}),
                **({"StopSignal": image.stop_signal} if image.stop_signal else {}),
                **({"Labels": dict(image.labels)} if image.labels else {}),
            },
            "rootfs": {"type": "layers", "diff_ids": [digest]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [{"mediaType": _LAYER, "digest": digest, "size": layer.stat().st_size}],
        }
    )
    return Described(image, config, manifest, layer, digest)


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def _json(document: Mapping[str, object] | Sequence[object]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _digest_of(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as source:
        while chunk := source.read(_CHUNK):
            found.update(chunk)
    return f"sha256:{found.hexdigest()}"


def _descriptor(kind: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}
