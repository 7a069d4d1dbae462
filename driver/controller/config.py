"""The controller's settings: flag, else environment (`RATION_` and the flag), else default."""

from pathlib import Path
from typing import ClassVar

import pydantic

from driver import errors, names
from driver.controller.allocation import policies, ranking
from driver.controller.web import config


class ControllerConfig(config.PageSettings):
    """Decides which GPU each pod's claims get, and writes the allocations."""

    PROGRAM: ClassVar[str] = "ration-controller"

    driver_name: str = pydantic.Field(
        default=names.DRIVER, description="Name of the DRA driver whose devices are allocated."
    )
    identity: str = pydantic.Field(
        default="", description="Name of this replica in the Lease; the host's name by default."
    )
    namespace: str = pydantic.Field(default="ration-system", description="Namespace of the Lease.")
    policies: str = pydantic.Field(
        default=",".join(policies.DEFAULT),
        description="Placement policies, the first one first; a later one decides between what the "
        f"earlier ones score alike. There are {', '.join(sorted(policies.POLICIES))}. With none "
        "the first devices that do are taken, in kube-scheduler's order.",
    )
    usual: Path | None = pydantic.Field(
        default=None,
        description="UsualWorkloads document (YAML): what is usually asked, which counts beside "
        "what claims have now; without it, a mix of whole GPUs and some parts.",
    )
    writers: int = pydantic.Field(
        default=8, ge=1, le=64, description="Threads that write decisions."
    )
    refused_seconds: float = pydantic.Field(
        default=30.0,
        gt=0,
        description="Free an unbound allocation so long after the scheduler refused the pod.",
    )
    relist_seconds: float = pydantic.Field(
        default=900.0,
        ge=10,
        description="List everything anew so often, should a watch have lost an event.",
    )
    evict_over_share: bool = pydantic.Field(
        default=False,
        description="Evict pods that use more than their share of a GPU for over a minute.",
    )

    label_nodes: bool = pydantic.Field(
        default=False,
        description="Label nodes as GPU feature discovery does: nvidia.com/gpu.product and others.",
    )

    pod_groups: bool = pydantic.Field(
        default=False,
        description="Read Kubernetes' own PodGroups (scheduling.k8s.io), where they are served: "
        "how many pods of a gang have to run at once.",
    )

    @pydantic.field_validator("policies")
    @classmethod
    def _known_policies(cls, value: str) -> str:
        try:
            ranking.of(value)
        except errors.BadInput as error:
            raise ValueError(f"{error.problem}; expected {error.expected}") from error
        return value
