"""Pods that people would create, of manifests: replicas unfolded, claims made of templates. Pure.

As the API server and kube-controller-manager would make them; names that they draw are numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from driver import errors, ids
from driver.cli.simulation import conversion as simulation_conversion
from driver.cli.simulation import dump
from driver.resources import extended_resources, fields
from driver.resources.core import pods

Raw = Mapping[str, Any]
_MOST_PODS = 100_000


@dataclass(frozen=True, slots=True)
class WorkloadPod:
    """A pod to be created; `templates` are those of its claims, by their names in the pod."""

    pod: pods.Pod
    templates: Mapping[str, str] = field(default_factory=dict)
    priority_class: str = ""


@dataclass(frozen=True, slots=True)
class Manifests:
    """Objects to create: pods in the order of the files, and `others` beside them.

    `notes` are for people: what was left out, or replaced.
    """

    workloads: tuple[WorkloadPod, ...]
    others: dump.Dump
    problems: tuple[dump.ReadProblem, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Copy:
    """A pod that a workload makes: its name, and the template of it."""

    name: str
    template: Raw
    at: str


def read(
    documents: Iterable[object],
    namespace: str = dump.NAMESPACE,
    classes: extended_resources.Classes | None = None,
) -> Manifests:
    """Read manifests; `namespace` is of objects that name none.

    With `classes`, pods that ask for device plugins' resources are converted as the webhook does.
    """
    reader = _Reader(namespace, classes)
    rest = [obj for obj in dump.expand_lists(documents) if not reader.take(obj)]
    others = dump.read([*rest, *reader.templates.values()], namespace)
    notes = [
        f"{count} {kind}: has no pod template, left out" for kind, count in others.ignored.items()
    ]
    return Manifests(
        tuple(reader.found.values()),
        others,
        (*reader.problems, *others.problems),
        (*reader.notes, *notes),
    )


@dataclass(slots=True)
class _Reader:
    namespace: str
    classes: extended_resources.Classes | None = None
    found: dict[ids.Key, WorkloadPod] = field(default_factory=dict)
    templates: dict[ids.Key, Raw] = field(default_factory=dict)
    alike: dict[tuple[int, str], tuple[_Copy, WorkloadPod]] = field(default_factory=dict)
    problems: list[dump.ReadProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    drawn: int = 0

    def take(self, obj: object) -> bool:
        """Return whether an object is a workload; record its pods or a problem."""
        if not isinstance(obj, Mapping):
            return False
        kind = str(obj.get("kind") or "")
        unfold = _WORKLOADS.get(kind)
        if unfold is None and (kind in dump.KINDS or not _is_workload(obj)):
            return False
        name = ""
        try:
            meta = fields.mapping(obj, "metadata")
            name = self._named(meta)
            within = fields.text(meta, "namespace", "metadata") or self.namespace
            for copy in (unfold or _of_template)(obj, name):
                self._put(copy, within, kind)
            if kind == "DaemonSet":
                self.notes.append(f"DaemonSet {name}: has a pod on each node, left out")
        except errors.BadInput as error:
            self.problems.append(_problem(kind, name, error))
        return True

    def _named(self, meta: fields.Raw) -> str:
        drawn = fields.text(meta, "generateName", "metadata")
        if drawn and not meta.get("name"):
            self.drawn += 1
            return f"{drawn}{self.drawn}"
        return fields.required_text(meta, "name", "metadata")

    def _put(self, copy: _Copy, namespace: str, kind: str) -> None:
        key = ids.Key(f"{namespace}/{copy.name}")
        if len(self.found) >= _MOST_PODS:
            raise errors.BadInput("spec", "makes too many pods", f"at most {_MOST_PODS} in all")
        if key in self.found:
            self.problems.append(dump.ReadProblem(kind, key, "", "makes a pod of a name twice"))
            return
        try:
            self.found[key] = self._wanted(copy, namespace, key)
        except errors.BadInput as error:
            path = f"{copy.at}.{error.location}".lstrip(".")
            raise errors.BadInput(path, error.problem, error.expected) from error

    def _wanted(self, copy: _Copy, namespace: str, key: ids.Key) -> WorkloadPod:
        """Return the parsed pod; replicas share one parse."""
        which = id(copy.template), namespace
        if which not in self.alike:
            template = self._converted(copy.template, namespace)
            self.alike[which] = copy, _read(template, copy.name, namespace)
        workload_pod = self.alike[which][1]
        uid = ids.PodUid(dump.derive_uid(f"Pod/{key}"))
        return replace(workload_pod, pod=replace(workload_pod.pod, name=copy.name, uid=uid))

    def _converted(self, template: Raw, namespace: str) -> Raw:
        if self.classes is None:
            return template
        converted, templates = simulation_conversion.convert_pod(template, namespace, self.classes)
        for item in templates:
            meta = fields.mapping(item, "metadata")
            self.templates[ids.Key(f"{namespace}/{meta['name']}")] = item
        return converted


def _read(template: Raw, name: str, namespace: str) -> WorkloadPod:
    spec = fields.mapping(template, "spec")
    if not fields.sequence(spec, "containers", "spec"):
        raise errors.BadInput("spec.containers", "is missing", "a list of containers")
    templates = {
        fields.required_text(item, "name", path): fields.text(
            item, "resourceClaimTemplateName", path
        )
        for path, item in fields.objects(spec, "resourceClaims", "spec")
        if item.get("resourceClaimTemplateName")
    }
    meta = {"name": name, "namespace": namespace}
    pod = pods.parse({"metadata": meta, "spec": _defaulted(spec)})
    return WorkloadPod(pod, templates, fields.text(spec, "priorityClassName", "spec"))


def _problem(kind: str, name: str, error: errors.BadInput) -> dump.ReadProblem:
    expected = f"; expected {error.expected}" if error.expected else ""
    return dump.ReadProblem(kind, name, error.location, f"{error.problem}{expected}")


def _defaulted(spec: fields.Raw) -> dict[str, object]:
    """Requests that are not told are the limits (defaulting of core/v1)."""
    defaulted: dict[str, object] = dict(spec)
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            defaulted[kind] = [
                _requesting(item, path) for path, item in fields.objects(spec, kind, "spec")
            ]
    return _requesting(defaulted, "spec")


def _requesting(obj: fields.Raw, path: str) -> dict[str, object]:
    resources = fields.mapping(obj, "resources", path)
    limits = fields.mapping(resources, "limits", f"{path}.resources")
    if not limits:
        return dict(obj)
    requested = fields.mapping(resources, "requests", f"{path}.resources")
    return {**obj, "resources": {**resources, "requests": {**limits, **requested}}}


# Workloads: how many pods, and of which template.


def _pod(obj: Raw, name: str) -> Iterator[_Copy]:
    yield _Copy(name, obj, "")


def _of_template(obj: Raw, name: str) -> Iterator[_Copy]:
    spec = fields.mapping(obj, "spec")
    template = fields.mapping(spec, "template", "spec")
    for number in range(_count(spec, "replicas", "spec")):
        yield _Copy(f"{name}-{number}", template, "spec.template")


def _job(obj: Raw, name: str) -> Iterator[_Copy]:
    yield from _of_job(fields.mapping(obj, "spec"), name, "spec")


def _of_job(spec: fields.Raw, name: str, path: str) -> Iterator[_Copy]:
    """Yield as many copies as run at once."""
    number = _count(spec, "parallelism", path)
    if spec.get("completions") is not None:
        number = min(number, _count(spec, "completions", path))
    template = fields.mapping(spec, "template", path)
    for index in range(number):
        yield _Copy(f"{name}-{index}", template, f"{path}.template")


def _cron_job(obj: Raw, name: str) -> Iterator[_Copy]:
    """One run of it."""
    template = fields.mapping(fields.mapping(obj, "spec"), "jobTemplate", "spec")
    path = "spec.jobTemplate.spec"
    yield from _of_job(fields.mapping(template, "spec", "spec.jobTemplate"), name, path)


def _job_set(obj: Raw, name: str) -> Iterator[_Copy]:
    """jobset.x-k8s.io: `<name>-<job>-<replica>-<pod>`."""
    for path, item in fields.objects(fields.mapping(obj, "spec"), "replicatedJobs", "spec"):
        inner = fields.mapping(fields.mapping(item, "template", path), "spec", f"{path}.template")
        called = f"{name}-{fields.required_text(item, 'name', path)}"
        for number in range(_count(item, "replicas", path)):
            yield from _of_job(inner, f"{called}-{number}", f"{path}.template.spec")


def _leader_worker_set(obj: Raw, name: str) -> Iterator[_Copy]:
    """leaderworkerset.x-k8s.io: groups of `size` pods, the leader `<name>-<group>` first."""
    spec = fields.mapping(obj, "spec")
    path = "spec.leaderWorkerTemplate"
    group = fields.mapping(spec, "leaderWorkerTemplate", "spec")
    workers = fields.mapping(group, "workerTemplate", path)
    leader, led = fields.mapping(group, "leaderTemplate", path), f"{path}.leaderTemplate"
    if not leader:
        leader, led = workers, f"{path}.workerTemplate"
    for number in range(_count(spec, "replicas", "spec")):
        yield _Copy(f"{name}-{number}", leader, led)
        for index in range(1, _count(group, "size", path)):
            yield _Copy(f"{name}-{number}-{index}", workers, f"{path}.workerTemplate")


def _none(_obj: Raw, _name: str) -> Iterator[_Copy]:
    yield from ()


def _count(spec: fields.Raw, key: str, path: str) -> int:
    result = fields.integer(spec, key, path, default=1)
    if not 0 <= result <= _MOST_PODS:
        raise errors.BadInput(f"{path}.{key}", f"is {result}", f"0 to {_MOST_PODS}")
    return result


_WORKLOADS: Mapping[str, Callable[[Raw, str], Iterator[_Copy]]] = {
    "Pod": _pod,
    "Deployment": _of_template,
    "ReplicaSet": _of_template,
    "StatefulSet": _of_template,
    "ReplicationController": _of_template,
    "Job": _job,
    "CronJob": _cron_job,
    "JobSet": _job_set,
    "LeaderWorkerSet": _leader_worker_set,
    "DaemonSet": _none,
}
"""Every other kind with a pod's template at `spec.template` is taken for one with `replicas`."""


def _is_workload(obj: Raw) -> bool:
    result: object = obj
    for key in ("spec", "template", "spec", "containers"):
        result = result.get(key) if isinstance(result, Mapping) else None
    return result is not None
