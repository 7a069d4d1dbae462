"""The shell of `ration must-gather`: asks for each piece, and goes on where one cannot be had."""

import functools
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from driver import errors
from driver.cli import cluster_state
from driver.cli import errors as cli_errors
from driver.cli.doctor import checks
from driver.cli.doctor import collect as doctor_collect
from driver.cli.doctor.checks import facts
from driver.cli.must_gather import contents
from driver.cli.simulation import dump, redaction
from driver.kube import client, gvr

Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """Where the chart is installed, under which driver name; `tail` lines of each log."""

    namespace: str
    driver: str
    tail: int


class Archive:
    """A tar of texts below one folder, and the index of them."""

    def __init__(self, to: tarfile.TarFile, folder: str, index: contents.Index) -> None:
        self.index = index
        self._to = to
        self._folder = folder

    def put(self, name: str, text: str) -> None:
        """Add a file."""
        data = text.encode()
        info = tarfile.TarInfo(f"{self._folder}/{name}")
        info.size, info.mtime, info.mode = len(data), self.index.at.timestamp(), 0o644
        self._to.addfile(info, io.BytesIO(data))
        self.index.files.append(name)

    def put_json(self, name: str, document: object) -> None:
        """Add a document."""
        self.put(name, json.dumps(document, indent=1) + "\n")

    def close(self) -> None:
        """Add the index."""
        self.put_json("index.json", self.index.document())


class Collector:
    """Whatever cannot be had is in the index, with why."""

    def __init__(self, kube: client.KubeClient, to: Archive, asked: Asked, say: Say) -> None:
        self._kube = kube
        self._to = to
        self._asked = asked
        self._say = say

    def collect(self) -> None:
        """All of it. Raises Unreachable where there is no server at the beginning."""
        server = self._kube.server_version().git
        pods = self._objects()
        versions = {"kubernetes": server, "ration": self._to.index.version}
        self._to.put_json("versions.json", {**versions, "images": contents.images(pods)})
        self._doctor()
        self._dump()
        self._events()
        for pod in pods:
            self._of_pod(pod)
        self._to.close()

    def _objects(self) -> list[Mapping[str, Any]]:
        """Every piece; the pods of ours."""
        pods: list[Mapping[str, Any]] = []
        for one in contents.PIECES:
            found = self._try(one.kind.plural, functools.partial(self._list, one))
            if found is None:
                continue
            self._to.put_json(f"objects/{one.kind.plural}.json", found)
            self._say(f"{one.kind.plural}: {len(found)}")
            if one.kind == gvr.PODS:
                pods = list(found)
        return pods

    def _list(self, one: contents.Piece) -> list[dict[str, Any]]:
        within = self._asked.namespace if one.here else None
        found = self._kube.list(one.kind, namespace=within, label_selector=one.labels)
        return [contents.bare(obj) for obj in found.items]

    def _doctor(self) -> None:
        asked, now = self._asked, self._to.index.at
        seen = doctor_collect.Gathering(self._kube).look(asked.driver, asked.namespace, "", now)
        found = checks.run(seen)
        self._to.put_json("doctor.json", [one.row() for one in found])
        unseen = [one for one in _listings(seen) if isinstance(one, facts.Unseen)]
        for one in unseen:
            self._to.index.missing[f"doctor: {one.right}"] = one.problem
        self._say(f"doctor: {len(found)} findings")

    def _dump(self) -> None:
        found = self._try("cluster.yaml", lambda: cluster_state.live(self._kube))
        if found is None:
            return
        objects, unseen = found
        for one in unseen:
            self._to.index.missing[f"cluster.yaml: {one}"] = "may not be seen"
        kept = [short for one in dump.unfold(objects) if (short := redaction.stripped(one))]
        document = {"apiVersion": "v1", "kind": "List", "items": kept}
        self._to.put("cluster.yaml", yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False))
        self._say(f"cluster: {len(kept)} objects that decide")

    def _events(self) -> None:
        found = self._try("events", lambda: self._kube.list(gvr.EVENTS).items)
        if found is None:
            return
        ours = [
            contents.bare(one)
            for one in found
            if contents.is_told_by_us(one, self._asked.namespace)
        ]
        self._to.put_json("events.json", ours)
        self._say(f"events: {len(ours)}")

    def _of_pod(self, pod: Mapping[str, Any]) -> None:
        name = str(pod["metadata"]["name"])
        for container, again in contents.containers(pod):
            self._log(name, container, {})
            if again:
                self._log(name, container, {"previous": "true"})
        port = contents.metrics_port(pod)
        if port is None:
            return
        what = f"metrics/{name}.txt"
        text = self._try(what, lambda: self._text(f"{name}:{port}", "proxy/metrics", {}))
        if text is not None:
            self._to.put(what, text)
        self._say(f"pod {name}: logs{', metrics' if text is not None else ''}")

    def _log(self, pod: str, container: str, more: Mapping[str, str]) -> None:
        what = f"logs/{pod}/{container}{'.previous' if more else ''}.log"
        query = {"container": container, "tailLines": str(self._asked.tail), **more}
        text = self._try(what, lambda: self._text(pod, "log", query))
        if text is not None:
            self._to.put(what, text)

    def _text(self, pod: str, what: str, query: Mapping[str, str]) -> str:
        return self._kube.get_text(gvr.PODS.path(self._asked.namespace, pod, what), query)

    def _try(self, what: str, ask: Callable[[], T]) -> T | None:
        """What is asked for; None where it cannot be had."""
        try:
            return ask()
        except errors.ApiError as error:
            why = cli_errors.line(error)
            self._to.index.missing[what] = why
            self._say(f"{what}: not had: {why}")
            return None


def _listings(seen: facts.Facts) -> tuple[object, ...]:
    return (
        *(seen.version, seen.nodes, seen.slices, seen.classes, seen.leases, seen.pods),
        *(seen.daemon_sets, seen.webhooks),
    )
