"""Reads an image's archive that `oci.write` made: its configuration, its files."""

import contextlib
import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from hack.image import oci


def config(path: Path) -> Mapping[str, Any]:
    """Read the image's configuration (image-spec v1.1), that of its one image."""
    with tarfile.open(path) as packed:
        return dict(json.load(_file(packed, _manifest(packed)["Config"])))


def environment(path: Path) -> dict[str, str]:
    """Read the variables that its programs start with."""
    pairs = (text.partition("=") for text in config(path)["config"]["Env"])
    return {name: value for name, _, value in pairs}


@contextlib.contextmanager
def layer(path: Path) -> Iterator[tarfile.TarFile]:
    """Open the one layer; its members are the image's files."""
    with tarfile.open(path) as packed:
        (name,) = _manifest(packed)["Layers"]
        with tarfile.open(fileobj=_file(packed, name)) as files:
            yield files


def unpack(path: Path, root: Path) -> None:
    """Lay out the image's files below `root`."""
    with layer(path) as files:
        files.extractall(root, filter="tar")


def _manifest(packed: tarfile.TarFile) -> Mapping[str, Any]:
    (image,) = json.load(_file(packed, oci.MANIFEST))
    return dict(image)


def _file(packed: tarfile.TarFile, name: str) -> IO[bytes]:
    file = packed.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is no file of the archive")
    return file
