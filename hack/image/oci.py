"""OCI image archives (image-spec v1.1), one uncompressed layer each; of the same files the same.

containerd imports them as they are: `ctr -n k8s.io images import FILE`.
"""

import contextlib
import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a layer: `content` is bytes, a file to copy, or a symbolic link's target.

    A name that ends with a slash is a folder.
    """

    name: str
    content: bytes | Path | str = b""
    mode: int = 0o755


@dataclass(frozen=True, slots=True)
class Image:
    """What runs in it: `name` as pods write it, `user` as `uid:gid` (empty: root)."""

    name: str
    architecture: str
    command: tuple[str, ...]
    environment: tuple[str, ...] = ("PATH=/usr/bin:/bin",)
    user: str = ""
    labels: Mapping[str, str] | None = None


def write(path: Path, image: Image, files: Iterable[Entry]) -> str:
    """Write the archive; the digest of its manifest. The layer lies beside it meanwhile."""
    layer = path.with_suffix(".layer")
    try:
        with layer.open("wb") as out:
            pack(out, files)
        return _assemble(path, image, layer)
    finally:
        layer.unlink(missing_ok=True)


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


def _assemble(path: Path, image: Image, layer: Path) -> str:
    digest = _digest_of(layer)
    config = _json(
        {
            "architecture": image.architecture,
            "os": "linux",
            "config": {
                "Cmd": list(image.command),
                "Env": list(image.environment),
                **({"User": image.user} if image.user else {}),
                **({"Labels": dict(image.labels)} if image.labels else {}),
            },
            "rootfs": {"type": "layers", "diff_ids": [digest]},
        }
    )
    described = {"mediaType": _LAYER, "digest": digest, "size": layer.stat().st_size}
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [described],
        }
    )
    entry = {
        **_descriptor(_MANIFEST, manifest),
        "annotations": {"io.containerd.image.name": image.name},
        "platform": {"architecture": image.architecture, "os": "linux"},
    }
    blobs = [Entry(_blob(_digest(one)), one) for one in (config, manifest)]
    index = _json({"schemaVersion": 2, "manifests": [entry]})
    with path.open("wb") as out:
        pack(
            out,
            [
                Entry("oci-layout", _json({"imageLayoutVersion": "1.0.0"})),
                Entry("index.json", index),
                Entry(_blob(digest), layer),
                *blobs,
            ],
        )
    return _digest(manifest)


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def _json(document: Mapping[str, object]) -> bytes:
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
