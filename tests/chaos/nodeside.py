"""One node as its own files, processes and hardware tell of it."""

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from driver import errors
from driver.devices import mps_files
from driver.mps import processes
from driver.mps.daemon import process as daemon_process
from driver.runtime.files import atomic
from hack.cluster import api, mounts
from hack.cluster import layout as cluster_layout
from simulator import layout, machine, store
from tests.chaos import logs, seen

_REGISTERED = '"registered with the kubelet"'
_FILE_SYSTEMS = {"pipe", "shm"}
"""Of each MPS daemon: for its sockets, and for memory shared with its clients."""


class NodeSide:
    """Looks at a node of a cluster; used by one thread, but `held`, which any may call."""

    def __init__(self, cluster: api.Cluster, name: str) -> None:
        self._cluster = cluster
        self.name = name
        self.root = cluster.node_dir(name)
        self.places = cluster_layout.NodeLayout(self.root)
        self.machine = self.places.gpu
        self._made = store.load(self.machine)
        self._known: dict[str, tuple[tuple[int, int], seen.Held]] = {}
        self._scars: dict[str, frozenset[str]] = {}
        self._log = logs.Lines(lambda: cluster.log_path("plugin", name))
        self._times = self._wanted = 0

    @property
    def uuids(self) -> tuple[str, ...]:
        """The GPUs, by their numbers."""
        return tuple(gpu.uuid for gpu in self._made.gpus)

    def scar(self, uuid: str | None = None) -> None:
        """A GPU, or each, lost what claims had set up on it; until they have gone that is so."""
        for gpu in self.uuids if uuid is None else (uuid,):
            on_it = {held.uid for held in self.held() if gpu in held.gpus}
            self._scars[gpu] = self._scars.get(gpu, frozenset()) | on_it

    def expect_registration(self) -> None:
        """Count the plugin as registered only once it has said so again."""
        self._wanted = self._registrations() + 1

    def _registrations(self) -> int:
        """Return how often the plugin has said that the kubelet has taken it on."""
        self._times += sum(_REGISTERED in line for line in self._log.read())
        return self._times

    def held(self) -> tuple[seen.Held, ...]:
        """Return what the plugin's records say now."""
        result = {}
        for path in json_files(self.root / "state" / "claims"):
            with contextlib.suppress(FileNotFoundError):
                result[path.name] = self._read(path)
        self._known = result
        return tuple(held for _, held in result.values())

    def _read(self, path: Path) -> tuple[tuple[int, int], seen.Held]:
        stat_result = path.stat()
        version = stat_result.st_mtime_ns, stat_result.st_ino
        values = self._known.get(path.name)
        if values is not None and values[0] == version:
            return values
        return version, seen.held(json.loads(path.read_bytes())["record"])

    def look(self) -> seen.Node:
        """All of it."""
        held = self.held()
        names = {held.uid for held in held}
        self._scars = {gpu: uids for gpu, uids in self._scars.items() if uids & names}
        layout_of = mps_files.Layout(self.places.mps)
        expected = _stems(layout_of.desired_dir)
        running, odd = self._daemons()
        return seen.Node(
            name=self.name,
            held=held,
            specs=frozenset(stem.rpartition("_")[2] for stem in _stems(self.root / "cdi")),
            gpus=self._gpus(),
            wanted=expected,
            running=running,
            ready=_ready(layout_of),
            shm=self._mounted(),
            strays=(*odd, *self._files(layout_of, expected)),
            scarred=frozenset(self._scars),
            registered=self._registrations() >= self._wanted,
            sockets=sum(
                path.suffix == ".sock" for path in _listed(self.root / "kubelet/plugins_registry")
            ),
        )

    def _gpus(self) -> tuple[seen.Gpu, ...]:
        state = machine.STATE_FORMAT.validate_json(layout.Layout(self.machine).state.read_bytes())
        return tuple(
            seen.Gpu(
                uuid=gpu.uuid,
                compute_mode=int(board.compute_mode),
                timeslice=int(board.timeslice),
                mig=board.mig,
                instances=frozenset(
                    (instance.at.start, instance.at.size) for instance in board.instances
                ),
                memory=gpu.product.memory_mib.total << 20,
                lost=board.lost,
            )
            for gpu in self._made.gpus
            for board in (state.boards[gpu.slot.pci],)
        )

    def _daemons(self) -> tuple[frozenset[str], list[str]]:
        """GPUs with an MPS daemon, and processes that nobody accounts for."""
        running: set[str] = set()
        odd = []
        own = {self._cluster.pid(entry, self.name) for entry in ("mps", "plugin")}
        for component in ("mps", "plugin"):
            for pid in self._cluster.processes(component, self.name) - own:
                words = processes.read_arguments(pid)
                programs = {os.path.basename(word) for word in words[:2]}  # noqa: PTH119 - argv
                if daemon_process.CONTROL in programs and "-f" in words:
                    pipe = processes.read_environment(pid).get(processes.PIPE, "")
                    running.add(Path(pipe).parent.name)
                elif words and daemon_process.SERVER not in programs:
                    odd.append(f"process {pid} {' '.join(words[:3])}")
        return frozenset(running), odd

    def _mounted(self) -> frozenset[str]:
        return mounted(mounts.below(self.places.mps, mounts.read()))

    def _files(self, source: mps_files.Layout, expected: frozenset[str]) -> list[str]:
        """Temporary and damaged files, and folders of daemons that nobody wants."""
        folders = (
            self.root / "state/claims",
            self.root / "cdi",
            source.desired_dir,
            source.status_dir,
        )
        odd = [
            str(path.relative_to(self.root))
            for folder in folders
            for path in _listed(folder)
            if atomic.target_name(path.name) != path.name or ".damaged-" in path.name
        ]
        lying = {path.name for path in _listed(source.run_dir)} - expected
        return [*odd, *(f"MPS run/{name}" for name in sorted(lying))]


def mounted(points: Iterable[Path]) -> frozenset[str]:
    """The GPUs whose daemons have their file systems, of `.../GPU/pipe` and `.../GPU/shm`.

    One of the two alone is listed with its name, which is that of no GPU.
    """
    kinds: dict[str, set[str]] = {}
    for point in points:
        kinds.setdefault(point.parent.name, set()).add(point.name)
    return frozenset(
        gpu if names == _FILE_SYSTEMS else f"{gpu}, {' and '.join(sorted(names))} alone"
        for gpu, names in kinds.items()
    )


def _ready(source: mps_files.Layout) -> frozenset[str]:
    names = set()
    for path in _listed(source.status_dir):
        with contextlib.suppress(FileNotFoundError, errors.BadInput):
            if mps_files.Status.parse(path.read_bytes(), path.name).state is mps_files.State.READY:
                names.add(path.stem)
    return frozenset(names)


def _stems(folder: Path) -> frozenset[str]:
    return frozenset(path.stem for path in json_files(folder) if not path.name.startswith("."))


def json_files(folder: Path) -> list[Path]:
    """Return the JSON files of a folder, none where a reboot has just taken it away."""
    return [path for path in _listed(folder) if path.suffix == ".json"]


def _listed(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError):
        return list(folder.iterdir())
    return []
