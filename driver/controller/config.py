"""The controller's settings: flag, else environment (`RATION_` and the flag), else default."""

from pathlib import Path
from typing import ClassVar

import pydantic

from driver import errors, names
from driver.controller.web import config as web_config
from driver.scheduling.allocator import policies
from driver.scheduling.allocator.policies import ranking
from driver.scheduling.lifecycle import backfill_plan


class ControllerConfig(web_config.PageSettings):
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
    workload_mix: Path | None = pydantic.Field(
        default=None,
        description="WorkloadMix document (YAML): what is usually asked, which counts beside "
        "what claims have now; without it, a mix of whole GPUs and some parts.",
    )
    write_workers: int = pydantic.Field(
        default=8, ge=1, le=64, description="Threads that write decisions."
    )
    unschedulable_timeout_seconds: float = pydantic.Field(
        default=30.0,
        gt=0,
        description="Free an unbound allocation so long after the scheduler refused the pod.",
    )
    starvation_seconds: float = pydantic.Field(
        default=3600.0,
        ge=0,
        description="Where there are Queues: a pod that waits longer than this for work of which "
        "no run time is known has devices kept idle for it, in rounds (backfill); 0: never. Work "
        "with known run times is waited for in any case.",
    )
    starvation_without_queues: bool = pydantic.Field(
        default=False,
        description="--starvation-seconds counts where there are no Queues, too.",
    )
    backfill_hold_seconds: float = pydantic.Field(
        default=900.0,
        gt=0,
        description="One round: devices are kept so long for a pod past --starvation-seconds, then "
        "nothing is for as long.",
    )
    backfill_max_fraction: float = pydantic.Field(
        default=0.5,
        ge=0,
        le=1,
        description="The most of the fleet's GPUs that such a round keeps; for a pod that asks "
        "more nothing is kept.",
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

    node_shapes: Path | None = pydantic.Field(
        default=None,
        description="NodeShapes document (YAML): the kinds of node that an autoscaler can bring. "
        "Nodes are asked for, marked and given up with it alone.",
    )
    placeholder_image: str = pydantic.Field(
        default="registry.k8s.io/pause:3.10.1",
        min_length=1,
        description="Image of the pods by which nodes are asked for: it does nothing.",
    )
    observed_shapes_configmap: str = pydantic.Field(
        default="ration-controller-node-shapes-seen",
        description="ConfigMap, beside the Lease, of what nodes of each shape were seen to have.",
    )
    interruption_taints: tuple[str, ...] = pydantic.Field(
        default=(
            "karpenter.sh/disrupted",
            "aws-node-termination-handler/spot-itn",
            "cloud.google.com/impending-node-termination",
            "ToBeDeletedByClusterAutoscaler",
            "node.kubernetes.io/out-of-service",
        ),
        description="Keys of node taints that say that a node is about to be taken away: gangs on "
        "it, and pods that ask for it, go elsewhere.",
    )

    @property
    def backfill(self) -> backfill_plan.BackfillRules:
        """Bounds of what is kept for the first in line."""
        return backfill_plan.BackfillRules(
            self.starvation_seconds,
            self.backfill_hold_seconds,
            self.backfill_max_fraction,
            self.starvation_without_queues,
        )

    @pydantic.field_validator("interruption_taints")
    @classmethod
    def _none_is_said_by_an_empty_one(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(key for key in value if key)

    @pydantic.field_validator("policies")
    @classmethod
    def _known_policies(cls, value: str) -> str:
        try:
            ranking.parse_policies(value)
        except errors.BadInput as error:
            raise ValueError(f"{error.problem}; expected {error.expected}") from error
        return value
