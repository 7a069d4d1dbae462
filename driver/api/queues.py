"""`Queue`: a team's share of the fleet, in a tree (D7). Cluster-scoped.

    apiVersion: ration.dev/v1alpha1
    kind: Queue
    metadata: {name: vision}
    spec:
      parent: research
      weight: 3
      deserved: {gpus: 12, memory: 960Gi}
      limit: {gpus: 16, models: [{product: NVIDIA H100 80GB HBM3, gpus: 4}]}
      members: [{namespace: vision}]

Pods belong to leaves: queues that are nobody's parent.
"""

from typing import Annotated, Literal

from pydantic import Field

from driver.api import crd

_MOST_MEMBERS = 256
_MOST_MODELS = 16
Reclaim = Literal["LowerPriority", "Any", "Never"]
IdleAction = Literal["report", "preferAsVictim", "evict"]


class ModelAmount(crd.Strict):
    """Number of GPUs of one model."""

    product: Annotated[
        str,
        Field(
            min_length=1,
            max_length=64,
            description="GPU model, as in the attribute productName of its devices.",
        ),
    ]
    gpus: Annotated[
        crd.GpuCount, Field(description="Number of GPUs; fractions are strings, such as '0.5'.")
    ]


class DeviceAmount(crd.Strict):
    """Number of devices of one driver other than GPUs."""

    driver: Annotated[
        crd.Name,
        Field(description="Name of a managed driver whose devices are no GPUs: nic.example.com."),
    ]
    count: Annotated[
        crd.GpuCount,
        Field(
            description="Number of devices. A share counts as its largest fraction of the device; "
            "fractions are strings, such as '0.5'."
        ),
    ]


class Amounts(crd.Strict):
    """Amounts of GPU and of other devices; what is not named is not bounded."""

    gpus: Annotated[
        crd.GpuCount | None,
        Field(
            description="Number of GPUs. A share or a MIG device counts as its largest fraction "
            "of the GPU's resources. Fractions are strings, such as '0.5'."
        ),
    ] = None
    memory: Annotated[
        crd.Memory | None, Field(description="GPU memory, a quantity such as 320Gi.")
    ] = None
    compute: Annotated[
        Annotated[int, Field(ge=0, le=1_000_000_000)] | None,
        Field(description="Compute in percent of one GPU; 400 is that of four GPUs."),
    ] = None
    models: Annotated[
        tuple[ModelAmount, ...],
        Field(
            max_length=_MOST_MODELS,
            description="GPUs by model, in addition to gpus; each model once.",
            json_schema_extra={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["product"],
            },
        ),
    ] = ()
    devices: Annotated[
        tuple[DeviceAmount, ...],
        Field(
            max_length=_MOST_MODELS,
            description="Devices of other managed drivers, such as NICs; each driver once.",
            json_schema_extra={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["driver"],
            },
        ),
    ] = ()


class Member(crd.Strict):
    """Selector of the queue's pods: a namespace, labels of which a pod has all, or both.

    If several queues select a pod, the one that matches most of its labels wins, then one that
    matches its namespace, then the first by name.
    """

    namespace: Annotated[
        str, Field(max_length=63, description="Namespace of the pods; empty: any.")
    ] = ""
    labels: Annotated[
        crd.Labels,
        Field(
            max_length=16,
            default_factory=dict,
            description="Labels that the pods must have; empty: any pod.",
        ),
    ]


class IdleReclaim(crd.Strict):
    """Action on pods whose GPUs are idle for some time."""

    model_config = crd.add_rules(
        crd.Rule(
            "duration(self.after) > duration('0s')", "a time longer than none is needed", ".after"
        )
    )
    after: Annotated[crd.Duration, Field(description="Idle time, such as 90s, 30m, 1h30m.")]
    action: Annotated[
        IdleAction,
        Field(
            description="Action for idle pods. report: report them. preferAsVictim: preempt them "
            "before others. evict: evict them."
        ),
    ] = "report"


def _not_below(field: str, compared: str, subject: str) -> crd.Rule:
    sides = ("limit", "deserved")
    existing = [*(f"self.{side}" for side in sides), *(f"self.{side}.{field}" for side in sides)]
    absent = " || ".join(f"!has({item})" for item in existing)
    message = f"the limit is less than what is deserved: {subject}"
    return crd.Rule(f"{absent} || {compared}", message, f".limit.{field}")


class QueueSpec(crd.Strict):
    """Share and limits of a queue, its pods, and the rules of preemption for them."""

    model_config = crd.add_rules(
        crd.Rule(
            "self.borrowing || !has(self.limit)",
            "without borrowing the limit is what is deserved: leave limit out",
            ".limit",
        ),
        _not_below("gpus", "double(self.limit.gpus) >= double(self.deserved.gpus)", "gpus"),
        _not_below(
            "memory",
            "quantity(self.limit.memory).compareTo(quantity(self.deserved.memory)) >= 0",
            "memory",
        ),
        _not_below("compute", "self.limit.compute >= self.deserved.compute", "compute"),
        _not_below(
            "models",
            "self.deserved.models.all(d, self.limit.models.all(l, "
            "l.product != d.product || double(l.gpus) >= double(d.gpus)))",
            "gpus of a model",
        ),
        _not_below(
            "devices",
            "self.deserved.devices.all(d, self.limit.devices.all(l, "
            "l.driver != d.driver || double(l.count) >= double(d.count)))",
            "devices of a driver",
        ),
    )
    parent: Annotated[
        crd.Name | None,
        Field(description="Name of the parent queue. Default: a root queue."),
    ] = None
    weight: Annotated[
        int,
        Field(
            ge=1,
            le=1_000_000,
            description="Weight for the distribution of undeserved and unused resources among "
            "siblings.",
        ),
    ] = 1
    deserved: Annotated[
        Amounts,
        Field(description="Deserved share, which it gets before siblings borrow. Default: none."),
    ] = Amounts()
    limit: Annotated[
        Amounts,
        Field(
            description="Limit of the queue and its children together; resources that are not "
            "named are unlimited."
        ),
    ] = Amounts()
    borrowing: Annotated[
        bool,
        Field(description="Whether it may use more than its deserved share, up to its limit."),
    ] = True
    members: Annotated[
        tuple[Member, ...],
        Field(
            max_length=_MOST_MEMBERS,
            description="Selects the pods of the queue: those that match any entry. Only queues "
            "without children have pods.",
        ),
    ] = ()
    half_life: Annotated[
        crd.Duration | None,
        Field(
            description="Half-life of past use, which lowers its priority among siblings. "
            "Default: only current use counts."
        ),
    ] = None
    preemptible: Annotated[bool, Field(description="Whether its pods may be preempted.")] = True
    reclaim: Annotated[
        Reclaim,
        Field(
            description="Which pending pods may reclaim what it uses beyond its fair share. "
            "LowerPriority: pods with a higher priority than the victim. Any: any pod of a queue "
            "below its fair share. Never: none."
        ),
    ] = "LowerPriority"
    min_run_time: Annotated[
        crd.Duration | None,
        Field(description="Minimum run time before a pod may be preempted."),
    ] = None
    starvation_bound: Annotated[
        crd.Duration,
        Field(
            description="Waiting time after which its oldest pending pod is scheduled next, and "
            "again each time the bound has passed."
        ),
    ] = "1h"
    idle_reclaim: Annotated[
        IdleReclaim | None,
        Field(description="Handling of pods with idle GPUs. Default: none."),
    ] = None


class Usage(crd.Strict):
    """Past use, which counts where the queue has a halfLife."""

    at: Annotated[crd.Time, Field(description="Time up to which use is included.")]
    gpu_seconds: Annotated[
        str, Field(description="GPU-seconds of dominant share, in GPUs, decayed until then.")
    ]


class QueueStatus(crd.Strict):
    """Observed state of a queue; amounts are formatted for people."""

    observed_generation: Annotated[
        Annotated[int, Field(ge=0)] | None,
        Field(description="Generation of the spec that the status refers to."),
    ] = None
    conditions: Annotated[
        crd.Conditions,
        Field(
            description="Conditions. Accepted: whether the queue is in use, or why it is ignored."
        ),
    ] = ()
    deserved: Annotated[str | None, Field(description="Deserved share.")] = None
    allocated: Annotated[str | None, Field(description="GPUs allocated to its pods.")] = None
    memory: Annotated[str | None, Field(description="GPU memory allocated to its pods.")] = None
    compute: Annotated[str | None, Field(description="GPU compute allocated to its pods.")] = None
    fair_share: Annotated[
        str | None, Field(description="Current fair share, by capacity and demand.")
    ] = None
    borrowed: Annotated[str | None, Field(description="Use beyond the deserved share.")] = None
    waiting: Annotated[
        Annotated[int, Field(ge=0)] | None, Field(description="Number of its pending pods.")
    ] = None
    oldest_wait: Annotated[
        str | None, Field(description="Waiting time of its oldest pending workload.")
    ] = None
    usage: Annotated[Usage | None, Field(description="Past use.")] = None


class Queue(crd.Strict):
    """A team's share of the GPUs of the cluster, in a tree of queues.

    Pods belong to a queue by its members, or by their label ration.dev/queue where a queue takes
    their namespace.
    """

    model_config = crd.add_rules(
        crd.Rule(
            "!has(self.spec.parent) || self.spec.parent != self.metadata.name",
            "a queue is not its own parent",
            ".spec.parent",
        )
    )
    spec: Annotated[QueueSpec, Field(description="Desired state.")]
    status: Annotated[
        QueueStatus | None, Field(description="Observed state, written by the controller.")
    ] = None
