"""Requests of pods, drawn from the seed, and their rendering. Pure."""

import random  # noqa: TID251 - the same every time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from driver import names

Raw = dict[str, Any]
HOLD_S = (3.0, 28.0)
IMAGE = "ration.local/workload:latest"
IDLE, WORK = "exec sleep 3600", "exec simclient --allocate 1Gi --hold forever"
_CLASS = {
    "whole": "gpu.ration.dev",
    "mps": "gpu-mps.ration.dev",
    "mig": "gpu-mig.ration.dev",
    "ts": "gpu-timeslice.ration.dev",
}
PROFILES = ("1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb")
INTERVALS = ("", "Short", "Long")


class Form(StrEnum):
    """Form of a workload: how many pods of which kind.

    `lone`: a pod with a claim of a template. `named`: with a claim made before it. `twins`: two
    pods of one claim. `gang`: pods that run together or not at all. `admin`: a pod that looks on.
    """

    LONE = "lone"
    NAMED = "named"
    TWINS = "twins"
    GANG = "gang"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Ask:
    """One work: pods that come, run for a while and go.

    `detail` is the MIG profile or the time slice. `always`: the kubelet starts its containers again
    after their end. `works`: they use the GPU.
    """

    name: str
    form: Form
    face: str
    count: int
    detail: str
    pods: int
    hold_s: float
    always: bool
    works: bool

    @property
    def gpus(self) -> float:
        """About how much of the fleet it takes."""
        if self.form is Form.ADMIN:
            return 0.0
        each = float(self.count) if self.face == "whole" else 0.3 * self.count
        return each * (self.pods if self.form is Form.GANG else 1)

    @property
    def pod_names(self) -> tuple[str, ...]:
        """Its pods."""
        return tuple(f"{self.name}-{number}" for number in range(self.pods))

    @property
    def claim(self) -> str:
        """The claim that it makes itself; "" where claims are of the template."""
        return self.name if self.form in {Form.NAMED, Form.TWINS} else ""


def asks(seed: int, hold_s: tuple[float, float] = HOLD_S) -> Iterator[Ask]:
    """Works one after the other, without end; each runs so long, at least and at most."""
    numbers = random.Random(f"{seed}/load")  # noqa: S311 - no secret
    number = 0
    while True:
        number += 1
        form = numbers.choices(list(Form), (45, 30, 12, 6, 7))[0]
        face = numbers.choices(list(_CLASS), (30, 30, 25, 15))[0]
        if form in {Form.GANG, Form.ADMIN}:
            face = "whole"
        many = face == "whole" and form not in {Form.GANG, Form.ADMIN}
        yield Ask(
            name=f"w{number:05d}",
            form=form,
            face=face,
            count=numbers.choice((1, 1, 1, 2, 4)) if many else 1,
            detail=_detail(face, numbers),
            pods={Form.TWINS: 2, Form.GANG: numbers.choice((2, 3))}.get(form, 1),
            hold_s=round(numbers.uniform(*hold_s), 1),
            always=numbers.random() < 0.4,
            works=face in {"mps", "whole"} and form is not Form.ADMIN and numbers.random() < 0.3,
        )


def _detail(face: str, numbers: random.Random) -> str:
    match face:
        case "mig":
            return numbers.choice(PROFILES)
        case "ts":
            return numbers.choice(INTERVALS)
        case "mps":
            return numbers.choice(("10", "20"))
        case _:
            return ""


def claim_spec(ask: Ask) -> Raw:
    """The claim's spec."""
    exactly: Raw = {"deviceClassName": _CLASS[ask.face], "count": ask.count}
    devices: Raw = {"requests": [{"name": "gpu", "exactly": exactly}]}
    if ask.form is Form.ADMIN:
        exactly["adminAccess"] = True
    if ask.face == "mig":
        words = f'device.attributes["{names.DRIVER}"].profile == "{ask.detail}"'
        exactly["selectors"] = [{"cel": {"expression": words}}]
    if ask.face in {"mps", "ts"}:
        share = {"memory": "10Gi", "compute": ask.detail if ask.face == "mps" else "10"}
        exactly["capacity"] = {"requests": share}
    if ask.face == "ts" and ask.detail:
        parameters = {
            "apiVersion": "resource.ration.dev/v1alpha1",
            "kind": "GpuConfig",
            "sharing": {"strategy": "TimeSlicing", "timeSlicing": {"interval": ask.detail}},
        }
        devices["config"] = [{"opaque": {"driver": names.DRIVER, "parameters": parameters}}]
    return {"devices": devices}


def claim(ask: Ask) -> Raw:
    """The claim that a work makes itself."""
    return {"metadata": {"name": ask.claim}, "spec": claim_spec(ask)}


def template(ask: Ask) -> Raw:
    """The template of a work's claims."""
    return {"metadata": {"name": ask.name}, "spec": {"spec": claim_spec(ask)}}


def pod(ask: Ask, name: str) -> Raw:
    """One of its pods."""
    entry = (
        {"resourceClaimName": ask.claim} if ask.claim else {"resourceClaimTemplateName": ask.name}
    )
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", WORK if ask.works else IDLE],
        "resources": {"requests": {"cpu": "1m"}, "claims": [{"name": "gpu"}]},
    }
    meta: Raw = {"name": name, "labels": {"work": ask.name}}
    if ask.form is Form.GANG:
        meta["labels"][names.GANG_LABEL] = ask.name
        meta["annotations"] = {names.GANG_SIZE: str(ask.pods)}
    return {
        "metadata": meta,
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "gpu", **entry}],
            "restartPolicy": "Always" if ask.always else "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
        },
    }
