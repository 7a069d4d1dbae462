"""A pod that asks for device plugins' resources, as one that asks by claims (D2, D20). Pure.

A device plugin gives every container its own devices, for the life of the pod, except that
containers which run one after another have the same: the kubelet hands the devices of an init
container on to those that come after it (kubelet's devicemanager, `devicesToReuse`). So here:

- Each app container and each sidecar (an init container with `restartPolicy: Always`) has a claim
  of its own, for they run beside each other.
- An init container runs before the app containers, and uses the claim of the first of them that
  asks for the same. Where none does, init containers that ask for the same share a claim. With
  device plugins an init container that asks for *less* than an app container costs nothing; here
  it is a claim more, as a container has a request of a claim whole.
- A claim is made of a template named by a hash of what it asks, so that pods of one shape share
  one template, and converting again changes nothing.

A resource of a DeviceClass with the label `ration.dev/convert: "true"` becomes devices of that
class. Else `nvidia.com/gpu` becomes whole GPUs, `nvidia.com/gpu.shared: N` N shares of one
time-sliced GPU, and `nvidia.com/mig-1g.10gb` parts of that profile. A device plugin writes
`1g.10gb+me` as `mig-1g.10gb.me`, for `+` may not stand in a resource's name.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from driver import errors, names
from driver.resources import fields, quantities
from driver.resources.dra import claims

GPU, SHARED, MIG = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-"
_PROFILE = re.compile(r"([1-9][0-9]?g\.[1-9][0-9]{0,3}gb)(\.me(?:\.all)?|\.gfx|)(-me|)")
_HASH_DIGITS = 12
_MOST_SHARES = 1024
_MIRROR = "kubernetes.io/config.mirror"
Operation = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Classes:
    """The driver, and its DeviceClasses for whole GPUs, time-sliced shares and parts.

    An empty class: NVIDIA's name for it is not converted. `labelled` are the DeviceClasses that
    their label converts, by extended resource; they come first.
    """

    driver: str = names.DRIVER
    whole: str = names.CLASS_GPU
    shared: str = names.CLASS_TIMESLICE
    mig: str = names.CLASS_MIG
    labelled: Mapping[str, str] = field(default_factory=dict)

    def converts(self, resource: str) -> bool:
        """Return whether pods that request a resource are converted."""
        return resource in self.labelled or bool(self._device_class(resource))

    def counts_shares(self, resource: str) -> bool:
        """Return whether the count of a resource is of shares of one device."""
        return resource == SHARED and resource not in self.labelled

    def _device_class(self, resource: str) -> str:
        """Return the class for a name of NVIDIA's; empty for any other name."""
        if mig_profile(resource) is not None:
            return self.mig
        return {GPU: self.whole, SHARED: self.shared}.get(resource, "")


@dataclass(frozen=True, slots=True)
class Template:
    """A ResourceClaimTemplate that a converted pod needs in its namespace."""

    name: str
    spec: fields.Raw

    def render(self, namespace: str) -> dict[str, object]:
        """Return it as the API takes it."""
        labels = {names.CONVERTED: "true"}
        meta = {"name": self.name, "namespace": namespace, "labels": labels}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": meta,
            "spec": {"metadata": {"labels": labels}, "spec": dict(self.spec)},
        }


@dataclass(frozen=True, slots=True)
class Conversion:
    """Templates that a converted pod needs, then the patch. Both empty: no conversion."""

    templates: tuple[Template, ...] = ()
    patch: tuple[Operation, ...] = ()


NOTHING = Conversion()
Shape = tuple[tuple[str, int], ...]
"""What a container asks: resources and how many of each, in order of their names."""


@dataclass(frozen=True, slots=True)
class _ContainerRequest:
    """A container that asks for something.

    `first`: it runs before the app containers, by itself; `app`: it is one of those.
    """

    pointer: str
    name: str
    resources: fields.Raw
    shape: Shape
    first: bool
    app: bool


@dataclass(frozen=True, slots=True)
class _Entry:
    """A claim of the pod: its name in it, and what it is for.

    `lent`: an init container that asks for the same may use it too.
    """

    name: str
    shape: Shape
    lent: bool


def is_convertible(resource: str) -> bool:
    """Return whether a resource is a name of NVIDIA's that has an equivalent claim."""
    return resource in {GPU, SHARED} or mig_profile(resource) is not None


def convert(pod: fields.Raw, classes: Classes | None = None) -> Conversion:
    """Return the conversion of a pod to one that requests by claims.

    Left alone are pods that request no convertible resource, mirror pods, which may not have
    claims, and pods that name their node: nobody would reserve their claims.

    Raises:
        BadInput: a request has no equivalent, or is invalid.
    """
    meta, spec = fields.mapping(pod, "metadata"), fields.mapping(pod, "spec")
    bound = bool(spec.get("nodeName"))
    if bound or _MIRROR in fields.mapping(meta, "annotations", "metadata"):
        return NOTHING
    classes = classes or Classes()
    asking = tuple(_asking(spec, classes))
    if not asking:
        return NOTHING
    taken = {
        fields.text(container_request, "name", path)
        for path, container_request in fields.objects(spec, "resourceClaims")
    }
    assigned = _assigned(asking, (f"ration-{path}" for path in itertools.count()), taken)
    entries = {entry.name: entry for _, entry in assigned}
    templates = {entry.shape: _template(entry.shape, classes) for entry in entries.values()}
    pod_claims = [
        {"name": name, "resourceClaimTemplateName": templates[entry.shape].name}
        for name, entry in entries.items()
    ]
    patch = [*_appended("/spec/resourceClaims", spec.get("resourceClaims"), pod_claims)]
    for container_request, entry in assigned:
        patch += _of_container(container_request, entry, classes)
    patch += _marks(pod, meta, asking)
    return Conversion(tuple(templates.values()), tuple(patch))


def _asking(spec: fields.Raw, classes: Classes) -> Iterator[_ContainerRequest]:
    for kind in ("initContainers", "containers"):
        for number, (path, item) in enumerate(fields.objects(spec, kind, "spec")):
            resources = fields.mapping(item, "resources", path)
            shape = tuple(sorted(_shape(resources, f"{path}.resources", classes)))
            if not shape:
                continue
            app = kind == "containers"
            sidecar = fields.text(item, "restartPolicy", path) == "Always"
            yield _ContainerRequest(
                pointer=f"/spec/{kind}/{number}",
                name=fields.text(item, "name", path),
                resources=resources,
                shape=shape,
                first=not app and not sidecar,
                app=app,
            )


def _shape(resources: fields.Raw, path: str, classes: Classes) -> Iterator[tuple[str, int]]:
    limits = fields.mapping(resources, "limits", path)
    requests = fields.mapping(resources, "requests", path)
    many = 0
    for resource in sorted({*limits, *requests}):
        if not classes.converts(resource):
            continue
        shares = classes.counts_shares(resource)
        most = _MOST_SHARES if shares else claims.MAX_RESULTS
        count = _count(resource, limits, requests, path, most)
        many += min(count, 1) if shares else count
        if many > claims.MAX_RESULTS:
            expected = f"{claims.MAX_RESULTS} devices a container at most"
            raise errors.BadInput(f"{path}.limits[{resource}]", f"is {count}", expected)
        if count:
            yield resource, count


def _count(resource: str, limits: fields.Raw, requests: fields.Raw, path: str, most: int) -> int:
    """Return the count; limit and request are equal, as devices cannot be overcommitted."""
    location = f"{path}.limits[{resource}]"
    if resource not in limits:
        raise errors.BadInput(f"{path}.requests[{resource}]", "stands without a limit", "one alike")
    limit = quantities.parse(limits[resource], location)
    quantity = quantities.parse(
        requests.get(resource, limits[resource]), f"{path}.requests[{resource}]"
    )
    if quantity != limit:
        problem = f"is {limit.text}, and the request is {quantity.text}"
        raise errors.BadInput(location, problem, "both alike: devices are not overcommitted")
    if limit.nanos % 10**9 or not 0 <= limit.units <= most:
        raise errors.BadInput(location, f"is {limit.text}", f"a whole number, {most} at most")
    return limit.units


def _assigned(
    asking: Sequence[_ContainerRequest], fresh: Iterator[str], taken: set[str]
) -> tuple[tuple[_ContainerRequest, _Entry], ...]:
    """Each container with the claim that it uses, in the containers' order."""
    entries: dict[str, _Entry] = {}
    numbered = (name for name in fresh if name not in taken)
    for container_request in asking:
        if not container_request.first:
            entries[container_request.pointer] = _Entry(
                next(numbered), container_request.shape, lent=container_request.app
            )
    for container_request in asking:
        if container_request.first:
            alike = (
                it for it in entries.values() if it.lent and it.shape == container_request.shape
            )
            match = next(alike, None)
            entry = match or _Entry(next(numbered), container_request.shape, lent=True)
            entries[container_request.pointer] = entry
    return tuple(
        (container_request, entries[container_request.pointer]) for container_request in asking
    )


def _template(shape: Shape, classes: Classes) -> Template:
    requests = [
        _request(resource, count, number, classes) for number, (resource, count) in enumerate(shape)
    ]
    spec: fields.Raw = {"devices": {"requests": requests}}
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:_HASH_DIGITS]
    kind = "mixed" if len(shape) > 1 else _word(shape[0][0], classes)
    return Template(f"ration-{kind}-{digest}", spec)


def _request(resource: str, count: int, number: int, classes: Classes) -> fields.Raw:
    """With what the API server would fill in, so that a template reads back as it was written."""
    exactly: dict[str, object] = {"allocationMode": "ExactCount", "count": count}
    if resource in classes.labelled:
        device_class = classes.labelled[resource]
        return {"name": f"class-{number}", "exactly": exactly | {"deviceClassName": device_class}}
    part = mig_profile(resource)
    if part is not None:
        text = f'device.attributes["{classes.driver}"].{names.ATTR_PROFILE} == "{part}"'
        exactly |= {
            "deviceClassName": classes.mig,
            "selectors": [{"cel": {"expression": text}}],
        }
        return {"name": f"mig-{number}", "exactly": exactly}
    if resource == SHARED:
        amounts = {"requests": {names.CAP_SHARES: str(count)}}
        exactly |= {"deviceClassName": classes.shared, "count": 1, "capacity": amounts}
        return {"name": "share", "exactly": exactly}
    return {"name": "gpu", "exactly": exactly | {"deviceClassName": classes.whole}}


def _word(resource: str, classes: Classes) -> str:
    if resource in classes.labelled:
        return "class"
    return {GPU: "gpu", SHARED: "shared"}.get(resource) or resource.partition("/")[2]


def mig_profile(resource: str) -> str | None:
    """The MIG profile that a resource is for; None where it is for none."""
    if not resource.startswith(MIG):
        return None
    match = _PROFILE.fullmatch(resource.removeprefix(MIG))
    return match and f"{match[1]}{match[2].replace('.', '+', 1)}{match[3]}"


def _of_container(
    container_request: _ContainerRequest, entry: _Entry, classes: Classes
) -> Iterator[Operation]:
    resources = f"{container_request.pointer}/resources"
    for section in ("limits", "requests"):
        for name in fields.mapping(container_request.resources, section):
            if classes.converts(name):
                yield {"op": "remove", "path": f"{resources}/{section}/{_escaped(name)}"}
    yield from _appended(
        f"{resources}/claims", container_request.resources.get("claims"), [{"name": entry.name}]
    )


def _marks(
    pod: fields.Raw, meta: fields.Raw, asking: Iterable[_ContainerRequest]
) -> Iterator[Operation]:
    """Yield the operations that mark the pod as converted, and from what."""
    converted_from = "; ".join(
        f"{container.name}: {', '.join(f'{name}={count}' for name, count in container.shape)}"
        for container in asking
    )
    if not isinstance(pod.get("metadata"), dict):
        yield {"op": "add", "path": "/metadata", "value": {}}
    for section, key, value in (
        ("labels", names.CONVERTED, "true"),
        ("annotations", names.CONVERTED_FROM, converted_from),
    ):
        if fields.mapping(meta, section, "metadata"):
            path = f"/metadata/{section}/{_escaped(key)}"
            yield {"op": "add", "path": path, "value": value}
        else:
            yield {"op": "add", "path": f"/metadata/{section}", "value": {key: value}}


def _appended(path: str, previous: object, added: Sequence[object]) -> Iterator[Operation]:
    if previous:
        yield from ({"op": "add", "path": f"{path}/-", "value": item} for item in added)
    else:
        yield {"op": "add", "path": path, "value": list(added)}


def _escaped(part: str) -> str:
    """Return a JSON pointer's token (RFC 6901)."""
    return part.replace("~", "~0").replace("/", "~1")
