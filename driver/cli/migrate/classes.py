"""DeviceClasses that replace the old resources in pods' requests.

Where kube-scheduler allocates, the class has the resource as its `extendedResourceName` (KEP-5004),
and pods stay as they are. Where Ration's controller allocates, the admission webhook converts them,
and gets the class by a flag. A resource that stood for several things (a whole GPU on one node, a
share on another) gets a class that selects all of them: the node's offer decides which.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver import names
from driver.cli.migrate import device_plugin_config
from driver.cli.migrate.offerings import Target
from driver.devices import faces
from driver.resources import extended_resources

_CHART: Mapping[faces.Kind, tuple[str, str]] = {
    faces.Kind.WHOLE: ("gpu", names.CLASS_GPU),
    faces.Kind.TIME_SLICING: ("timeSlicing", names.CLASS_TIMESLICE),
    faces.Kind.MPS: ("mps", names.CLASS_MPS),
    faces.Kind.MIG: ("mig", names.CLASS_MIG),
}
"""The chart's value and the class's name."""
_WEBHOOK = {
    extended_resources.GPU: ("--whole-class", names.CLASS_GPU),
    extended_resources.SHARED: ("--shared-class", names.CLASS_TIMESLICE),
}
"""The flag and its default."""
QUOTA = ".deviceclass.resource.k8s.io/devices"
"""After a class's name, the quota's key for its devices (KEP-4381)."""
_TERMS = {
    faces.Kind.WHOLE: ((names.ATTR_TYPE, names.TYPE_GPU),),
    faces.Kind.TIME_SLICING: (
        (names.ATTR_TYPE, names.TYPE_SHARE),
        (names.ATTR_SHARING, names.SHARING_TIME_SLICING),
    ),
    faces.Kind.MPS: (
        (names.ATTR_TYPE, names.TYPE_SHARE),
        (names.ATTR_SHARING, names.SHARING_MPS),
    ),
    faces.Kind.MIG: ((names.ATTR_TYPE, names.TYPE_MIG),),
}


@dataclass(frozen=True, slots=True)
class Replacement:
    """The class for an old resource.

    `extended`: kube-scheduler turns the resource into claims of the class. `flag` is what the
    webhook has to be told, "" for nothing; `left` why pods have to change, "" where they need not.
    """

    resource: str
    targets: frozenset[Target]
    name: str
    extended: bool
    manifest: Mapping[str, object] | None = None
    flag: str = ""
    left: str = ""

    @property
    def profile(self) -> str:
        """Profile, if it stands for a single MIG profile; "" otherwise."""
        (first, *others) = sorted(self.targets)
        return "" if others else first.profile

    @property
    def several(self) -> str:
        """Return the result for a container that requests several; "" if as many devices."""
        kinds = {target.kind for target in self.targets}
        if self.resource == extended_resources.SHARED and not self.extended:
            return "several are as many shares of one GPU"
        if faces.Kind.MPS in kinds:
            return "several are refused: a container has one MPS daemon"
        if faces.Kind.TIME_SLICING in kinds:
            return "several are shares of as many GPUs; with fewer on a node the pod waits"
        return ""

    @property
    def old_key(self) -> str:
        """Old key of a ResourceQuota."""
        return f"requests.{self.resource}"

    @property
    def new_key(self) -> str:
        """New key of a ResourceQuota."""
        return f"{self.name}{QUOTA}"

    @property
    def counts(self) -> str:
        """Meaning of the keys (kubernetes 1.37.1, quota/v1/evaluator/core/resource_claims.go)."""
        if self.extended:
            return "keep the old key: it counts pods as before, and claims; the new one claims only"
        if self.name == names.CLASS_MIG:
            return "the new key counts the parts of all profiles together"
        if self.resource == extended_resources.SHARED:
            return "the new key counts a container once, however many shares it asks"
        return "the old key counts only pods that are not converted"


def replacements(
    resources: Mapping[str, frozenset[Target]], *, scheduler: bool
) -> tuple[Replacement, ...]:
    """The class for each old resource."""
    make = _extended if scheduler else _converted
    return tuple(make(resource, resources[resource]) for resource in sorted(resources))


def values(result: Iterable[Replacement]) -> Mapping[str, object]:
    """The chart's `deviceClasses` for those that it installs."""
    tables: dict[str, dict[str, object]] = {}
    profiles: list[dict[str, str]] = []
    for replacement in result:
        if not replacement.extended or replacement.manifest is not None:
            continue
        if replacement.profile:
            own = (
                {}
                if replacement.name == _profile_class(replacement.profile)
                else {"name": replacement.name}
            )
            entry = {
                "profile": replacement.profile,
                **own,
                "extendedResourceName": replacement.resource,
            }
            profiles.append(entry)
        else:
            (target,) = replacement.targets
            tables[_CHART[target.kind][0]] = {"extendedResourceName": replacement.resource}
    if profiles:
        tables.setdefault("mig", {})["profiles"] = profiles
    return tables


def _extended(resource: str, targets: frozenset[Target]) -> Replacement:
    (first, *others) = sorted(targets)
    if others:
        name = _own_name(resource)
        manifest = _manifest(name, targets, resource)
        return Replacement(resource, targets, name, extended=True, manifest=manifest)
    if first.profile:
        name = _profile_class(first.profile)
        if resource.endswith(device_plugin_config.SHARED_SUFFIX):
            name = _own_name(resource)
        return Replacement(resource, targets, name, extended=True)
    return Replacement(resource, targets, _CHART[first.kind][1], extended=True)


def _converted(resource: str, targets: frozenset[Target]) -> Replacement:
    (first, *others) = sorted(targets)
    manifest = None
    name = _CHART[first.kind][1]
    if others:
        name = _own_name(resource)
        manifest = _manifest(name, targets)
    left = ""
    if not extended_resources.is_convertible(resource):
        requested = resource.removesuffix(device_plugin_config.SHARED_SUFFIX)
        left = f"the webhook does not convert {resource}: pods have to ask for {requested}"
    flag, usual = _WEBHOOK.get(resource, ("", name))
    message = f"{flag}={name}" if name != usual else ""
    return Replacement(
        resource, targets, name, extended=False, manifest=manifest, flag=message, left=left
    )


def _own_name(resource: str) -> str:
    """`nvidia-gpu.ration.dev` for `nvidia.com/gpu`."""
    word = resource.partition("/")[2].replace(device_plugin_config.SHARED_SUFFIX, "-shared").lower()
    return f"nvidia-{word}.{names.GROUP}"


def _profile_class(profile: str) -> str:
    """Return the chart's class name of a profile."""
    return f"gpu-mig-{profile.replace('+', '.').lower()}.{names.GROUP}"


def _manifest(
    name: str, targets: Iterable[Target], extended: str | None = None
) -> Mapping[str, object]:
    terms = " || ".join(f"({term})" for term in _selected(targets))
    expression = f'device.driver == "{names.DRIVER}" && ({terms})'
    spec: dict[str, object] = {"selectors": [{"cel": {"expression": expression}}]}
    if extended is not None:
        spec["extendedResourceName"] = extended
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def _selected(targets: Iterable[Target]) -> Iterator[str]:
    for target in sorted(targets):
        pairs = _TERMS[target.kind]
        if target.profile:
            pairs = (*pairs, (names.ATTR_PROFILE, target.profile))
        path = f'device.attributes["{names.DRIVER}"]'
        yield " && ".join(f'{path}.{attribute} == "{value}"' for attribute, value in pairs)
