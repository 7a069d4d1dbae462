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
class GatherOptions:
    """Release namespace and driver name; `tail` lines of each log."""

    namespace: str
    driver: str
    tail: int


class Archive:
    """A tar of texts below one folder, and the index of them."""

    def __init__(self, to: tarfile.TarFile, folder: str, index: contents.Index) -> None:
        self.index = index
        self._to = to
        self._folder = folder

    def add(self, name: str, text: str) -> None:
        """Add a file."""
        data = text.encode()
        info = tarfile.TarInfo(f"{self._folder}/{name}")
        info.size, info.mtime, info.mode = len(data), self.index.at.timestamp(), 0o644
        self._to.addfile(info, io.BytesIO(data))
        self.index.files.append(name)

    def add_json(self, name: str, document: object) -> None:
        """Add a document."""
        self.add(name, json.dumps(document, indent=1) + "\n")

    def close(self) -> None:
        """Add the index."""
        self.add_json("index.json", self.index.document())


class Collector:
    """Whatever cannot be had is in the index, with why."""

    def __init__(
        self, kube: client.KubeClient, to: Archive, gather_options: GatherOptions, say: Say
    ) -> None:
        self._kube = kube
        self._to = to
        self._asked = gather_options
        self._say = say

    def collect(self) -> None:
        """All of it. Raises Unreachable where there is no server at the beginning."""
        server = self._kube.server_version().git
        pods = self._objects()
        versions = {"kubernetes": server, "ration": self._to.index.version}
        self._to.add_json("versions.json", {**versions, "images": contents.images(pods)})
        self._doctor()
        self._dump()
        self._events()
        for pod in pods:
            self._of_pod(pod)
        self._to.close()

    def _objects(self) -> list[Mapping[str, Any]]:
        """Every piece; the pods of ours."""
        pods: list[Mapping[str, Any]] = []
        for item in contents.PIECES:
            result = self._try(item.kind.plural, functools.partial(self._list, item))
            if result is None:
                continue
            self._to.add_json(f"objects/{item.kind.plural}.json", result)
            self._say(f"{item.kind.plural}: {len(result)}")
            if item.kind == gvr.PODS:
                pods = list(result)
        return pods

    def _list(self, gather_item: contents.GatherItem) -> list[dict[str, Any]]:
        within = self._asked.namespace if gather_item.here else None
        listing = self._kube.list(
            gather_item.kind, namespace=within, label_selector=gather_item.labels
        )
        return [contents.strip_object(obj) for obj in listing.items]

    def _doctor(self) -> None:
        gather_options, now = self._asked, self._to.index.at
        seen = doctor_collect.FactCollector(self._kube).collect(
            gather_options.driver, gather_options.namespace, "", now
        )
        findings = checks.run(seen)
        self._to.add_json("doctor.json", [finding.row() for finding in findings])
        unseen = [finding for finding in _listings(seen) if isinstance(finding, facts.Unreadable)]
        for finding in unseen:
            self._to.index.missing[f"doctor: {finding.right}"] = finding.problem
        self._say(f"doctor: {len(findings)} findings")

    def _dump(self) -> None:
        result = self._try("cluster.yaml", lambda: cluster_state.read_live(self._kube))
        if result is None:
            return
        objects, unseen = result
        for expand_list in unseen:
            self._to.index.missing[f"cluster.yaml: {expand_list}"] = "may not be seen"
        retained = [
            short
            for expand_list in dump.expand_lists(objects)
            if (short := redaction.strip(expand_list))
        ]
        document = {"apiVersion": "v1", "kind": "List", "items": retained}
        self._to.add("cluster.yaml", yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False))
        self._say(f"cluster: {len(retained)} objects that decide")

    def _events(self) -> None:
        result = self._try("events", lambda: self._kube.list(gvr.EVENTS).items)
        if result is None:
            return
        ours = [
            contents.strip_object(item)
            for item in result
            if contents.is_relevant_event(item, self._asked.namespace)
        ]
        self._to.add_json("events.json", ours)
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
        subject = f"metrics/{name}.txt"
        text = self._try(subject, lambda: self._text(f"{name}:{port}", "proxy/metrics", {}))
        if text is not None:
            self._to.add(subject, text)
        self._say(f"pod {name}: logs{', metrics' if text is not None else ''}")

    def _log(self, pod: str, container: str, more: Mapping[str, str]) -> None:
        subject = f"logs/{pod}/{container}{'.previous' if more else ''}.log"
        query = {"container": container, "tailLines": str(self._asked.tail), **more}
        text = self._try(subject, lambda: self._text(pod, "log", query))
        if text is not None:
            self._to.add(subject, text)

    def _text(self, pod: str, subject: str, query: Mapping[str, str]) -> str:
        return self._kube.get_text(gvr.PODS.path(self._asked.namespace, pod, subject), query)

    def _try(self, subject: str, ask: Callable[[], T]) -> T | None:
        """Return the result; None, recorded as missing, on an error."""
        try:
            return ask()
        except errors.ApiError as error:
            why = cli_errors.error_line(error)
            self._to.index.missing[subject] = why
            self._say(f"{subject}: not had: {why}")
            return None


def _listings(seen: facts.Facts) -> tuple[object, ...]:
    return (
        *(seen.version, seen.nodes, seen.slices, seen.classes, seen.leases, seen.pods),
        *(seen.daemon_sets, seen.webhooks),
    )
