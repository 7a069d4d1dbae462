"""The command line for kubectl: one archive that asks nothing of the machine, and krew's manifest.

The archive holds the files of the image. Its launcher starts their Python by their own loader, so
that neither the machine's Python nor its libc counts.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path

import yaml

from hack import debian
from hack.cluster import releases
from hack.image import oci, python
from hack.release import checksums

PLUGIN = "ration"
PROGRAM = "kubectl-ration"
_LOADERS = ("lib64/ld-", "lib/ld-")
_LIBRARIES = ("usr/local/lib", "lib/{tuple}", "usr/lib/{tuple}", "lib64", "usr/lib64")
_LAUNCHER = """\
#!/bin/sh
# Starts the Python of this folder by its own loader: what the machine has is not used.
here=$(dirname -- "$(readlink -f -- "$0")")
unset PYTHONPATH PYTHONSTARTUP
export PYTHONHOME="$here/usr/local" PYTHONDONTWRITEBYTECODE=1
exec "$here/{loader}" --library-path "{libraries}" "$here/usr/local/bin/{python}" \\
  -P -m driver.cli "$@"
"""
_CAVEATS = """\
Reads the cluster by your kubeconfig. Start with:
  kubectl ration devices
  kubectl ration explain pod NAME
"""


def write(path: Path, files: Sequence[oci.Entry]) -> None:
    """Write the archive (tar, gzip) of files that `hack.image.build.staged` gave, links aside.

    Krew unpacks an archive of files and folders alone, and the launcher names what it starts.
    """
    launcher = oci.Entry(PROGRAM, _launcher([one.name for one in files]).encode(), 0o755)
    licence = oci.Entry("LICENSE", Path(__file__).parents[2] / "LICENSE", 0o644)
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=6, mtime=0) as packed,
    ):
        oci.pack(packed, [launcher, licence, *(one for one in files if not one.is_link)])


def manifest(archive: Path, version: str, url: str) -> str:
    """Krew's manifest (krew.googlecontainertools.github.com/v1alpha2) of the archive, as YAML.

    `url` is the folder that will serve the archive. Of other processors and systems no archive is
    named: `pip install` of the wheel serves these.
    """
    platform = {
        "selector": {"matchLabels": {"os": "linux", "arch": releases.architecture()}},
        "uri": f"{url.rstrip('/')}/{archive.name}",
        "sha256": checksums.sha256(archive),
        "bin": PROGRAM,
    }
    document = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": PLUGIN},
        "spec": {
            "version": f"v{version}",
            "homepage": "https://ration.dev",
            "shortDescription": "Show who has which GPU, and why a pod waits",
            "description": "Shows GPUs shared by Ration: devices, owners, queues, reasons and "
            "nearest fits of pods that wait; cordons, drains and defragments them.\n",
            "caveats": _CAVEATS,
            "platforms": [platform],
        },
    }
    return yaml.safe_dump(document, sort_keys=False)


def _launcher(names: Sequence[str]) -> str:
    (loader,) = (name for name in names if name.startswith(_LOADERS))
    triplet = debian.TUPLES[releases.architecture()]
    folders = [folder.format(tuple=triplet) for folder in _LIBRARIES]
    libraries = ":".join(f"$here/{folder}" for folder in folders)
    return _LAUNCHER.format(loader=loader, libraries=libraries, python=python.VERSION)
