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

`nvidia.com/gpu` becomes whole GPUs, `nvidia.com/gpu.shared: N` N shares of one time-sliced GPU, and
`nvidia.com/mig-1g.10gb` parts of that profile. A device plugin writes `1g.10gb+me` as
`mig-1g.10gb.me`, for `+` may not stand in a resource's name.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    """The driver, and its DeviceClasses for whole GPUs, time-sliced shares and parts."""

    driver: str = names.DRIVER
    whole: str = names.CLASS_GPU
    shared: str = names.CLASS_TIMESLICE
    mig: str = names.CLASS_MIG


@dataclass(frozen=True, slots=True)
class Template:
    """A ResourceClaimTemplate that a converted pod needs in its namespace."""

    name: str
    spec: fields.Raw

    def render(self, namespace: str) -> dict[str, object]:
        """As the API takes it."""
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
    """What a pod needs to be converted: templates first, then the patch. Both empty: nothing."""

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
    """Whether pods that ask for a resource are converted."""
    return resource in {GPU, SHARED} or mig_profile(resource) is not None


def convert(pod: fields.Raw, classes: Classes | None = None) -> Conversion:
    """What makes a pod one that asks by claims.

    Left alone are pods that ask for nothing of it, those that the kubelet brings itself (mirror
    pods may not have claims), and those that name their node: nobody would reserve their claims.

    Raises:
        BadInput: what it asks has no equal, or is not what a pod can ask.
    """
    meta, spec = fields.mapping(pod, "metadata"), fields.mapping(pod, "spec")
    bound = bool(spec.get("nodeName"))
    if bound or _MIRROR in fields.mapping(meta, "annotations", "metadata"):
        return NOTHING
    asking = tuple(_asking(spec))
    if not asking:
        return NOTHING
    taken = {fields.text(one, "name", at) for at, one in fields.objects(spec, "resourceClaims")}
    given = _assigned(asking, (f"ration-{at}" for at in itertools.count()), taken)
    entries = {entry.name: entry for _, entry in given}
    templates = {
        entry.shape: _template(entry.shape, classes or Classes()) for entry in entries.values()
    }
    wanted = [
        {"name": name, "resourceClaimTemplateName": templates[entry.shape].name}
        for name, entry in entries.items()
    ]
    patch = [*_appended("/spec/resourceClaims", spec.get("resourceClaims"), wanted)]
    for one, entry in given:
        patch += _of_container(one, entry)
    patch += _marks(pod, meta, asking)
    return Conversion(tuple(templates.values()), tuple(patch))


def _asking(spec: fields.Raw) -> Iterator[_ContainerRequest]:
    for kind in ("initContainers", "containers"):
        for number, (at, one) in enumerate(fields.objects(spec, kind, "spec")):
            resources = fields.mapping(one, "resources", at)
            shape = tuple(sorted(_shape(resources, f"{at}.resources")))
            if not shape:
                continue
            app = kind == "containers"
            sidecar = fields.text(one, "restartPolicy", at) == "Always"
            yield _ContainerRequest(
                pointer=f"/spec/{kind}/{number}",
                name=fields.text(one, "name", at),
                resources=resources,
                shape=shape,
                first=not app and not sidecar,
                app=app,
            )


def _shape(resources: fields.Raw, at: str) -> Iterator[tuple[str, int]]:
    limits = fields.mapping(resources, "limits", at)
    requests = fields.mapping(resources, "requests", at)
    many = 0
    for resource in sorted({*limits, *requests}):
        if not is_convertible(resource):
            continue
        count = _count(resource, limits, requests, at)
        many += min(count, 1) if resource == SHARED else count
        if many > claims.MAX_RESULTS:
            expected = f"{claims.MAX_RESULTS} devices a container at most"
            raise errors.BadInput(f"{at}.limits[{resource}]", f"is {count}", expected)
        if count:
            yield resource, count


def _count(resource: str, limits: fields.Raw, requests: fields.Raw, at: str) -> int:
    """How many; limit and request are one number, as devices cannot be overcommitted."""
    where = f"{at}.limits[{resource}]"
    if resource not in limits:
        raise errors.BadInput(f"{at}.requests[{resource}]", "stands without a limit", "one alike")
    limit = quantities.parse(limits[resource], where)
    asked = quantities.parse(requests.get(resource, limits[resource]), f"{at}.requests[{resource}]")
    if asked != limit:
        problem = f"is {limit.text}, and the request is {asked.text}"
        raise errors.BadInput(where, problem, "both alike: devices are not overcommitted")
    most = _MOST_SHARES if resource == SHARED else claims.MAX_RESULTS
    if limit.nanos % 10**9 or not 0 <= limit.units <= most:
        raise errors.BadInput(where, f"is {limit.text}", f"a whole number, {most} at most")
    return limit.units


def _assigned(
    asking: Sequence[_ContainerRequest], fresh: Iterator[str], taken: set[str]
) -> tuple[tuple[_ContainerRequest, _Entry], ...]:
    """Each container with the claim that it uses, in the containers' order."""
    given: dict[str, _Entry] = {}
    numbered = (name for name in fresh if name not in taken)
    for one in asking:
        if not one.first:
            given[one.pointer] = _Entry(next(numbered), one.shape, lent=one.app)
    for one in asking:
        if one.first:
            alike = (it for it in given.values() if it.lent and it.shape == one.shape)
            found = next(alike, None)
            entry = found or _Entry(next(numbered), one.shape, lent=True)
            given[one.pointer] = entry
    return tuple((one, given[one.pointer]) for one in asking)


def _template(shape: Shape, classes: Classes) -> Template:
    requests = [
        _request(resource, count, number, classes) for number, (resource, count) in enumerate(shape)
    ]
    spec: fields.Raw = {"devices": {"requests": requests}}
    told = hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:_HASH_DIGITS]
    kind = "mixed" if len(shape) > 1 else _word(shape[0][0])
    return Template(f"ration-{kind}-{told}", spec)


def _request(resource: str, count: int, number: int, classes: Classes) -> fields.Raw:
    """With what the API server would fill in, so that a template reads back as it was written."""
    exactly: dict[str, object] = {"allocationMode": "ExactCount", "count": count}
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


def _word(resource: str) -> str:
    return {GPU: "gpu", SHARED: "shared"}.get(resource) or resource.partition("/")[2]


def mig_profile(resource: str) -> str | None:
    """The MIG profile that a resource is for; None where it is for none."""
    if not resource.startswith(MIG):
        return None
    found = _PROFILE.fullmatch(resource.removeprefix(MIG))
    return found and f"{found[1]}{found[2].replace('.', '+', 1)}{found[3]}"


def _of_container(one: _ContainerRequest, entry: _Entry) -> Iterator[Operation]:
    resources = f"{one.pointer}/resources"
    for section in ("limits", "requests"):
        for name in fields.mapping(one.resources, section):
            if is_convertible(name):
                yield {"op": "remove", "path": f"{resources}/{section}/{_escaped(name)}"}
    yield from _appended(f"{resources}/claims", one.resources.get("claims"), [{"name": entry.name}])


def _marks(
    pod: fields.Raw, meta: fields.Raw, asking: Iterable[_ContainerRequest]
) -> Iterator[Operation]:
    """That it was converted, and from what."""
    told = "; ".join(
        f"{one.name}: {', '.join(f'{name}={count}' for name, count in one.shape)}" for one in asking
    )
    if not isinstance(pod.get("metadata"), dict):
        yield {"op": "add", "path": "/metadata", "value": {}}
    for place, key, value in (
        ("labels", names.CONVERTED, "true"),
        ("annotations", names.CONVERTED_FROM, told),
    ):
        if fields.mapping(meta, place, "metadata"):
            path = f"/metadata/{place}/{_escaped(key)}"
            yield {"op": "add", "path": path, "value": value}
        else:
            yield {"op": "add", "path": f"/metadata/{place}", "value": {key: value}}


def _appended(path: str, before: object, added: Sequence[object]) -> Iterator[Operation]:
    if before:
        yield from ({"op": "add", "path": f"{path}/-", "value": one} for one in added)
    else:
        yield {"op": "add", "path": path, "value": list(added)}


def _escaped(part: str) -> str:
    """As in a JSON pointer (RFC 6901)."""
    return part.replace("~", "~0").replace("/", "~1")
