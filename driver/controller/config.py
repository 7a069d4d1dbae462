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
    """Allocates GPUs to the claims of pods, and writes the allocations."""

    PROGRAM: ClassVar[str] = "ration-controller"

    driver_name: str = pydantic.Field(
        default=names.DRIVER, description="Name of the DRA driver whose devices are allocated."
    )
    identity: str = pydantic.Field(
        default="", description="Identity of this replica in the Lease. Default: the host name."
    )
    namespace: str = pydantic.Field(default="ration-system", description="Namespace of the Lease.")
    policies: str = pydantic.Field(
        default=",".join(policies.DEFAULT),
        description="Placement policies in order of precedence; a later one breaks the ties of the "
        f"earlier ones. Available: {', '.join(sorted(policies.POLICIES))}. Empty: "
        "the first fitting devices in kube-scheduler's order.",
    )
    workload_mix: Path | None = pydantic.Field(
        default=None,
        description="Path of a WorkloadMix document (YAML). The fragmentation policy combines it "
        "with the current allocations. Default: mostly whole GPUs and some parts.",
    )
    managed_drivers: Path | None = pydantic.Field(
        default=None,
        description="Path of a ManagedDrivers document (YAML): other DRA drivers whose devices the "
        "controller allocates, by DeviceTaintRules. Default: none.",
    )
    write_workers: int = pydantic.Field(
        default=8,
        ge=1,
        le=64,
        description="Number of threads that write decisions to the API server, and of those that "
        "nominate nodes meanwhile.",
    )
    unschedulable_timeout_seconds: float = pydantic.Field(
        default=30.0,
        gt=0,
        description="Time in seconds after which the devices of an unbound pod are freed if "
        "kube-scheduler rejects the pod.",
    )
    starvation_seconds: float = pydantic.Field(
        default=3600.0,
        ge=0,
        description="Waiting time in seconds after which backfill reserves devices for a pod whose "
        "blockers have no declared run time; 0 disables it. Applies in clusters with Queues. "
        "Blockers with a declared run time are always waited for.",
    )
    starvation_without_queues: bool = pydantic.Field(
        default=False,
        description="Apply --starvation-seconds in clusters without Queues too.",
    )
    backfill_hold_seconds: float = pydantic.Field(
        default=900.0,
        gt=0,
        description="Duration in seconds of one backfill reservation for a pod past "
        "--starvation-seconds; a pause of the same duration follows.",
    )
    backfill_max_fraction: float = pydantic.Field(
        default=0.5,
        ge=0,
        le=1,
        description="Maximum fraction of all GPUs that such a reservation holds. A pod that "
        "requests more gets no reservation.",
    )
    relist_seconds: float = pydantic.Field(
        default=900.0,
        ge=10,
        description="Interval in seconds at which informers relist, in case a watch lost an event.",
    )
    evict_over_share: bool = pydantic.Field(
        default=False,
        description="Evict pods that exceed their share of a GPU's memory for more than a minute.",
    )

    label_nodes: bool = pydantic.Field(
        default=False,
        description="Label nodes as GPU feature discovery does, such as nvidia.com/gpu.product.",
    )

    pod_groups: bool = pydantic.Field(
        default=False,
        description="Read Kubernetes' own PodGroups (scheduling.k8s.io), if that API is served: "
        "gangs with their minimum count, priority, topology and disruption mode.",
    )

    node_shapes: Path | None = pydantic.Field(
        default=None,
        description="Path of a NodeShapes document (YAML): the node shapes that the autoscaler can "
        "provision. Node provisioning is disabled without it.",
    )
    placeholder_image: str = pydantic.Field(
        default="registry.k8s.io/pause:3.10.1",
        min_length=1,
        description="Image of the placeholder pods that trigger the autoscaler; it does nothing.",
    )
    observed_shapes_configmap: str = pydantic.Field(
        default="ration-controller-node-shapes-seen",
        description="Name of the ConfigMap that stores the observed resources of each node shape, "
        "in the namespace of the Lease.",
    )
    interruption_taints: tuple[str, ...] = pydantic.Field(
        default=(
            "karpenter.sh/disrupted",
            "aws-node-termination-handler/spot-itn",
            "cloud.google.com/impending-node-termination",
            "ToBeDeletedByClusterAutoscaler",
            "node.kubernetes.io/out-of-service",
        ),
        description="Keys of node taints that announce the removal of a node: gangs on it are "
        "moved and pending pods avoid it.",
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
