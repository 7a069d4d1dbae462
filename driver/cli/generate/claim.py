"""A claim, or a template of one, and a pod that uses it, from what a person asks. Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from driver import errors, names
from driver.cli.validate import checks as validate_checks
from driver.resources import quantities

Raw = dict[str, Any]
_PROFILE = re.compile(r"[1-9][0-9]*(c\.[1-9][0-9]*)?g\.[1-9][0-9]*gb([+-][a-z.]+)*")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_REQUEST = "gpu"
_GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists"}
_COMMAND = ["sh", "-c", "nvidia-smi -L; sleep infinity"]
_PERCENT = 100


class SharedAttribute(StrEnum):
    """Attribute that the devices of a claim have in common."""

    NVLINK = "nvlink"
    NUMA = "numa"
    PCIE = "pcie"


class Isolation(StrEnum):
    """Required isolation of a part by need."""

    HARDWARE = "hardware"
    LIMITS = "limits"
    NONE = "none"


_MATCHED = {SharedAttribute.NUMA: names.ATTR_NUMA_NODE, SharedAttribute.PCIE: names.ATTR_PCIE_ROOT}


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of device: exactly one of these, or none for a part by need."""

    whole: int = 0
    mig: str = ""
    mps: bool = False
    time_slice: bool = False
    by_need: bool = False

    @property
    def set_flags(self) -> tuple[str, ...]:
        """Flags that were given."""
        flags = {
            "--whole": bool(self.whole),
            "--mig": bool(self.mig),
            "--mps": self.mps,
            "--time-slice": self.time_slice,
            "--slice": self.by_need,
        }
        return tuple(flag for flag, granted in flags.items() if granted)


@dataclass(frozen=True, slots=True)
class Amount:
    """Amount of a device, and number of devices; 0 and "" are unset."""

    memory: str = ""
    compute: int = 0
    count: int = 0
    isolation: Isolation | None = None


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Requested devices, and the GPUs they are on."""

    kind: Kind
    amount: Amount = Amount()
    product: str = ""
    same: SharedAttribute | None = None


@dataclass(frozen=True, slots=True)
class OutputForm:
    """Output: `namespace` "" names none, `image` "" is no pod."""

    name: str = "gpu"
    namespace: str = ""
    template: bool = False
    image: str = ""
    driver: str = names.DRIVER


def documents(wish: ClaimRequest, form: OutputForm) -> list[Raw]:
    """The objects to be created.

    Raises:
        BadInput: what is asked contradicts itself, or nothing could give it.
    """
    if not _NAME.fullmatch(form.name):
        raise errors.BadInput("--name", f"is {form.name!r}", "a name such as train-0")
    _refuse(wish)
    devices: Raw = {"requests": [{"name": _REQUEST, "exactly": _exactly(wish, form.driver)}]}
    if wish.same in _MATCHED:
        devices["constraints"] = [{"matchAttribute": _MATCHED[wish.same]}]
    if wish.amount.isolation is not None:
        devices["config"] = [_isolated(wish.amount.isolation, form.driver)]
    built = [_object(devices, form), *([_pod(form)] if form.image else [])]
    verdict = validate_checks.check_sources(
        [validate_checks.Source("", object_problem) for object_problem in built], form.driver
    )
    for object_problem in verdict.problems:
        if object_problem.certain:
            raise errors.BadInput("what is asked", object_problem.message)
    return built


def _refuse(wish: ClaimRequest) -> None:
    """Raise BadInput where it contradicts itself."""
    kind, amount = wish.kind, wish.amount
    parts = bool(amount.memory or amount.compute)
    if len(kind.set_flags) > 1:
        raise errors.BadInput(" and ".join(kind.set_flags), "exclude each other", "one of them")
    if not kind.set_flags and not parts and amount.isolation is None:
        raise errors.BadInput("nothing", "is asked", "--whole N, --mig 1g.10gb, or --memory 20Gi")
    if (kind.whole or kind.mig) and parts:
        subject = "is all of a GPU" if kind.whole else "has the amounts of its profile"
        text = f"{subject}: --memory and --compute are of shares"
        raise errors.BadInput(kind.set_flags[0], text, "--mps, --time-slice or --slice with them")
    if kind.whole and amount.count:
        raise errors.BadInput("--whole and --count", "say how many twice", "--whole N alone")
    if amount.isolation is not None and kind.set_flags not in {(), ("--slice",)}:
        raise errors.BadInput(
            f"--isolation and {kind.set_flags[0]}", "exclude each other", "--slice"
        )
    if kind.mig and not _PROFILE.fullmatch(kind.mig):
        raise errors.BadInput("--mig", f"is {kind.mig!r}", "a profile such as 1g.10gb")
    if amount.memory and quantities.parse(amount.memory, "--memory").nanos <= 0:
        raise errors.BadInput("--memory", f"is {amount.memory!r}", "an amount such as 20Gi")
    if amount.compute and not 1 <= amount.compute <= _PERCENT:
        raise errors.BadInput("--compute", f"is {amount.compute}", "percent of a GPU, 1 to 100")
    _refuse_same(wish)


def _refuse_same(wish: ClaimRequest) -> None:
    several = max(wish.kind.whole, wish.amount.count)
    if wish.same is not None and several < 2:  # noqa: PLR2004 - one device has nothing to share
        raise errors.BadInput("--same", "is of several devices", "--whole or --count, 2 or more")
    if wish.same is SharedAttribute.NVLINK and not wish.kind.whole:
        raise errors.BadInput("--same nvlink", "is of whole GPUs", "--whole N")


def _exactly(wish: ClaimRequest, driver: str) -> Raw:
    exactly: Raw = {"deviceClassName": _class(wish.kind)}
    count = wish.kind.whole or wish.amount.count
    if count > 1:
        exactly["count"] = count
    selectors = [{"cel": {"expression": selector}} for selector in _selectors(wish, driver)]
    if selectors:
        exactly["selectors"] = selectors
    amounts = {names.CAP_MEMORY: wish.amount.memory, names.CAP_COMPUTE: wish.amount.compute or ""}
    requested = {name: str(amount) for name, amount in amounts.items() if amount}
    if requested:
        exactly["capacity"] = {"requests": requested}
    return exactly


def _class(kind: Kind) -> str:
    if kind.whole:
        return names.CLASS_GPU
    if kind.mig:
        return names.CLASS_MIG
    if kind.mps:
        return names.CLASS_MPS
    return names.CLASS_TIMESLICE if kind.time_slice else names.CLASS_SLICE


def _selectors(wish: ClaimRequest, driver: str) -> list[str]:
    owner = f'device.attributes["{driver}"]'
    result = []
    if wish.kind.mig:
        result.append(f'{owner}.{names.ATTR_PROFILE} == "{wish.kind.mig}"')
    if wish.product:
        part = wish.product.lower().replace("\\", "\\\\").replace('"', '\\"')
        result.append(f'{owner}.{names.ATTR_PRODUCT}.lowerAscii().contains("{part}")')
    if wish.same is SharedAttribute.NVLINK:
        result.append(f"{owner}.?{names.ATTR_NVLINK_PEERS}.orValue(0) != 0")
    return result


def _isolated(isolation: Isolation, driver: str) -> Raw:
    parameters = {
        "apiVersion": names.CONFIG_VERSION,
        "kind": "SliceConfig",
        "isolation": isolation.value,
    }
    return {"opaque": {"driver": driver, "parameters": parameters}}


def _object(devices: Raw, form: OutputForm) -> Raw:
    spec: Raw = {"devices": devices}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate" if form.template else "ResourceClaim",
        "metadata": _meta(form),
        "spec": {"spec": spec} if form.template else spec,
    }


def _pod(form: OutputForm) -> Raw:
    named = "resourceClaimTemplateName" if form.template else "resourceClaimName"
    container: Raw = {
        "name": "main",
        "image": form.image,
        "command": _COMMAND,
        "resources": {"claims": [{"name": _REQUEST}]},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _meta(form),
        "spec": {
            "restartPolicy": "Never",
            "resourceClaims": [{"name": _REQUEST, named: form.name}],
            "containers": [container],
            "tolerations": [_GPU_TAINT],
        },
    }


def _meta(form: OutputForm) -> Raw:
    return {"name": form.name, **({"namespace": form.namespace} if form.namespace else {})}
