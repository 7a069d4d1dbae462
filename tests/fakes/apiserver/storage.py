"""Objects, their versions and the history that watches read. Thread safe."""

import bisect
import copy
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from driver import clock
from tests.fakes.apiserver import applying, rules

Object = dict[str, Any]
Kind = tuple[str, str]
"""Group and plural; versions of a group share their objects."""
Name = tuple[str, str]
"""Namespace ("" for none) and name."""


@dataclass(frozen=True)
class Change:
    """One entry of the history."""

    version: int
    kind: Kind
    old: Object | None
    new: Object | None


@dataclass(frozen=True)
class Apply:
    """Configuration that a manager applies; with `force` it takes fields from others."""

    body: Object
    manager: str
    force: bool


class Storage:
    """Storage as of etcd and the registry."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.version = 1000
        self.compacted = 0
        self.history: list[Change] = []
        self._objects: dict[Kind, dict[Name, Object]] = {}
        self._owners: dict[str, applying.Owners] = {}

    def get(self, kind: Kind, name: Name) -> Object:
        with self.changed:
            result = self._objects.get(kind, {}).get(name)
            if result is None:
                raise rules.Refusal(404, "NotFound", f'{kind[1]} "{name[1]}" not found')
            return copy.deepcopy(result)

    def all(self, kind: Kind, namespace: str | None) -> tuple[list[Object], int]:
        """In key order, with the version they are of."""
        with self.changed:
            results = sorted(self._objects.get(kind, {}).items())
            items = [copy.deepcopy(o) for n, o in results if namespace in {None, n[0]}]
            return items, self.version

    def create(self, kind: Kind, namespace: str, body: Object) -> Object:
        obj = copy.deepcopy(body)
        meta = obj.setdefault("metadata", {})
        with self.changed:
            if "name" not in meta and "generateName" in meta:
                meta["name"] = f"{meta['generateName']}{self.version:05d}"
            if not meta.get("name"):
                raise rules.Refusal(422, "Invalid", "metadata.name: Required value")
            name = (namespace, meta["name"])
            if name in self._objects.setdefault(kind, {}):
                text = f'{kind[1]} "{meta["name"]}" already exists'
                raise rules.Refusal(409, "AlreadyExists", text)
            rules.check(kind[1], None, obj)
            meta |= {"namespace": namespace} if namespace else {}
            meta.setdefault("uid", self._uid())
            meta.setdefault("creationTimestamp", _now())
            return self._store(kind, name, None, obj)

    def update(
        self, kind: Kind, name: Name, change: Callable[[Object], Object], subresource: str = ""
    ) -> Object:
        """Write what `change` makes of the object, unless it names another version or UID."""
        with self.changed:
            old = self.get(kind, name)
            new = change(copy.deepcopy(old))
            _same(old, new.get("metadata", {}))
            new = rules.written(kind[1], subresource, old, new)
            for key in ("uid", "name", "namespace", "creationTimestamp", "resourceVersion"):
                if key in old["metadata"]:
                    new["metadata"][key] = old["metadata"][key]
            rules.check(kind[1], old, new)
            if new == old:
                return old
            meta = new["metadata"]
            if meta.get("deletionTimestamp") and not meta.get("finalizers"):
                return self._drop(kind, name, new)
            return self._store(kind, name, old, new)

    def apply(self, kind: Kind, name: Name, how: Apply, subresource: str = "") -> Object:
        """Write what the manager applies, and remember that it did."""
        with self.changed:
            uid = self.get(kind, name)["metadata"]["uid"]
            owners = self._owners.get(uid, {})

            def change(old: Object) -> Object:
                nonlocal owners
                new, owners = applying.apply(old, how.body, how.manager, owners, force=how.force)
                if kind[1] == "nodes":  # of which somebody reads whose a field is
                    plain = {who.rpartition("/")[0]: paths for who, paths in owners.items()}
                    new["metadata"]["managedFields"] = applying.managed(plain)
                return new

            written = self.update(kind, name, change, subresource)
            self._owners[uid] = owners
            return written

    def delete(self, kind: Kind, name: Name, preconditions: Object | None = None) -> Object:
        """Mark what has finalizers, or is a pod on a node; drop everything else."""
        with self.changed:
            old = self.get(kind, name)
            _same(old, preconditions or {})
            new = copy.deepcopy(old)
            on_node = kind[1] == "pods" and new.get("spec", {}).get("nodeName")
            if not new["metadata"].get("finalizers") and not on_node:
                return self._drop(kind, name, old)
            new["metadata"].setdefault("deletionTimestamp", _now())
            return old if new == old else self._store(kind, name, old, new)

    def put(self, kind: Kind, obj: Object) -> Object:
        """Write an object as it is, status and all: the test's own hand."""
        meta = obj["metadata"]
        name = (meta.get("namespace", ""), meta["name"])
        with self.changed:
            old = self._objects.setdefault(kind, {}).get(name)
            new = copy.deepcopy(obj)
            new["metadata"].setdefault("uid", (old or {}).get("metadata", {}).get("uid"))
            new["metadata"]["uid"] = new["metadata"]["uid"] or self._uid()
            new["metadata"].setdefault("creationTimestamp", _now())
            return self._store(kind, name, old, new)

    def remove(self, kind: Kind, name: Name) -> Object:
        """Drop an object at once, whatever its finalizers say."""
        with self.changed:
            return self._drop(kind, name, self.get(kind, name))

    def touch(self) -> int:
        """Let time pass: the version grows, as by writes to other kinds."""
        with self.changed:
            self.version += 1
            return self.version

    def compact(self) -> None:
        """Forget the history: watches from now back get 410."""
        with self.changed:
            self.compacted = self.version
            self.history.clear()
            self.changed.notify_all()

    def trim(self, retained: int) -> None:
        """Forget the history but for the last `kept` changes."""
        with self.changed:
            if len(self.history) > retained:
                self.compacted = self.history[-retained - 1].version
                del self.history[:-retained]

    def since(self, kind: Kind, version: int) -> list[Change]:
        """The kind's changes after `version`. Raises the 410 Refusal."""
        with self.changed:
            if version < self.compacted:
                text = f"too old resource version: {version} ({self.compacted})"
                raise rules.Refusal(410, "Expired", text)
            first = bisect.bisect_right(self.history, version, key=lambda change: change.version)
            return [c for c in self.history[first:] if c.kind == kind]

    def _uid(self) -> str:
        return str(uuid.UUID(int=self.version))

    def _store(self, kind: Kind, name: Name, old: Object | None, new: Object) -> Object:
        self._record(kind, old, new)
        self._objects[kind][name] = new
        return copy.deepcopy(new)

    def _drop(self, kind: Kind, name: Name, last: Object) -> Object:
        gone = copy.deepcopy(last)
        self._objects[kind].pop(name)
        self.version += 1
        gone["metadata"]["resourceVersion"] = str(self.version)
        self.history.append(Change(self.version, kind, gone, None))
        self.changed.notify_all()
        return copy.deepcopy(gone)

    def _record(self, kind: Kind, old: Object | None, new: Object) -> None:
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        self.history.append(Change(self.version, kind, old, copy.deepcopy(new)))
        self.changed.notify_all()


def _same(old: Object, expected: Object) -> None:
    for key in ("uid", "resourceVersion"):
        value = expected.get(key)
        if value is not None and value != old["metadata"][key]:
            text = f"the object has been modified: {key} is {old['metadata'][key]}, not {value}"
            raise rules.Refusal(409, "Conflict", text)


def _now() -> str:
    return clock.rfc3339(clock.SystemClock().now())
