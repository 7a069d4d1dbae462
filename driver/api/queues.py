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
    """So many GPUs of one model."""

    product: Annotated[
        str,
        Field(
            min_length=1,
            max_length=64,
            description="The model, as the attribute productName of its devices says it.",
        ),
    ]
    gpus: Annotated[crd.GpuCount, Field(description="How many; a part as text, such as '0.5'.")]


class Amounts(crd.Strict):
    """Amounts of GPU; what is not named is not bounded."""

    gpus: Annotated[
        crd.GpuCount | None,
        Field(
            description="GPUs. A share or a MIG device is the part of a GPU that it takes of what "
            "is scarcest. A part is said as text, such as '0.5'."
        ),
    ] = None
    memory: Annotated[
        crd.Memory | None, Field(description="Memory of GPUs, as a quantity such as 320Gi.")
    ] = None
    compute: Annotated[
        Annotated[int, Field(ge=0, le=1_000_000_000)] | None,
        Field(description="Compute in percent of one GPU: 400 is what four GPUs have."),
    ] = None
    models: Annotated[
        tuple[ModelAmount, ...],
        Field(
            max_length=_MOST_MODELS,
            description="GPUs of single models, beside gpus of all; each model once.",
            json_schema_extra={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["product"],
            },
        ),
    ] = ()


class Member(crd.Strict):
    """Whose pods belong to the queue: those of a namespace, with all of some labels.

    Of several queues the one that names more of the pod's labels has it, then one that names its
    namespace, then the first by name.
    """

    namespace: Annotated[
        str, Field(max_length=63, description="The pods' namespace; empty: any.")
    ] = ""
    labels: Annotated[
        crd.Labels,
        Field(
            max_length=16,
            default_factory=dict,
            description="Labels that the pods have, all of them; empty: any pod.",
        ),
    ]


class IdleReclaim(crd.Strict):
    """What is done with a pod whose GPUs did nothing for some time."""

    model_config = crd.add_rules(
        crd.Rule(
            "duration(self.after) > duration('0s')", "a time longer than none is needed", ".after"
        )
    )
    after: Annotated[
        crd.Duration, Field(description="For how long they did nothing, such as 90s, 30m, 1h30m.")
    ]
    action: Annotated[
        IdleAction,
        Field(
            description="report: it is told. preferAsVictim: it goes before others, when some have "
            "to go. evict: it is evicted."
        ),
    ] = "report"


def _not_below(field: str, compared: str, subject: str) -> crd.Rule:
    sides = ("limit", "deserved")
    existing = [*(f"self.{side}" for side in sides), *(f"self.{side}.{field}" for side in sides)]
    absent = " || ".join(f"!has({item})" for item in existing)
    message = f"the limit is less than what is deserved: {subject}"
    return crd.Rule(f"{absent} || {compared}", message, f".limit.{field}")


class QueueSpec(crd.Strict):
    """What a queue has a right to, and what others have a right to of it."""

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
    )
    parent: Annotated[
        crd.Name | None,
        Field(description="The queue that this one is a part of; without one it is at the top."),
    ] = None
    weight: Annotated[
        int,
        Field(
            ge=1,
            le=1_000_000,
            description="Its part, beside its siblings', of what nobody deserves or asks for.",
        ),
    ] = 1
    deserved: Annotated[
        Amounts,
        Field(
            description="What it has before siblings get more than they deserve; none by default."
        ),
    ] = Amounts()
    limit: Annotated[
        Amounts,
        Field(
            description="What it and its children never exceed together; what is not named has no "
            "limit of its own."
        ),
    ] = Amounts()
    borrowing: Annotated[
        bool,
        Field(description="Whether it may use more than it deserves, as far as its limit allows."),
    ] = True
    members: Annotated[
        tuple[Member, ...],
        Field(
            max_length=_MOST_MEMBERS,
            description="Whose pods belong to it: those that any of these describes. Pods belong "
            "to queues that are nobody's parent.",
        ),
    ] = ()
    half_life: Annotated[
        crd.Duration | None,
        Field(
            description="Past use counts against it, half as much after this time; without it only "
            "what is used now counts."
        ),
    ] = None
    preemptible: Annotated[
        bool, Field(description="Whether its pods may be evicted for others' sake at all.")
    ] = True
    reclaim: Annotated[
        Reclaim,
        Field(
            description="For whom what it has beyond its fair share is taken back. LowerPriority: "
            "for pods of higher priority than the one that goes. Any: for any pod of a queue below "
            "its fair share. Never: for none."
        ),
    ] = "LowerPriority"
    min_run_time: Annotated[
        crd.Duration | None,
        Field(description="A pod is not evicted for another before it ran so long."),
    ] = None
    starvation_bound: Annotated[
        crd.Duration,
        Field(
            description="Of its pods that waited so long the oldest has the next turn of all, and "
            "one more each time that the bound has passed again."
        ),
    ] = "1h"
    idle_reclaim: Annotated[
        IdleReclaim | None,
        Field(description="What is done with pods whose GPUs do nothing; without it nothing is."),
    ] = None


class Usage(crd.Strict):
    """Past use, which counts where the queue has a halfLife."""

    at: Annotated[crd.Time, Field(description="Until when it is counted.")]
    gpu_seconds: Annotated[
        str, Field(description="GPU-seconds of dominant share, in GPUs, decayed until then.")
    ]


class QueueStatus(crd.Strict):
    """What the controller says of a queue; amounts are texts for people."""

    observed_generation: Annotated[
        Annotated[int, Field(ge=0)] | None,
        Field(description="The generation of the spec that this is of."),
    ] = None
    conditions: Annotated[
        crd.Conditions,
        Field(description="Accepted: the queue is one of the tree, or why it is not."),
    ] = ()
    deserved: Annotated[str | None, Field(description="What it deserves.")] = None
    allocated: Annotated[str | None, Field(description="GPUs that its pods have now.")] = None
    memory: Annotated[str | None, Field(description="GPU memory that they have.")] = None
    compute: Annotated[str | None, Field(description="GPU compute that they have.")] = None
    fair_share: Annotated[
        str | None, Field(description="Its fair share now, of what there is and is asked for.")
    ] = None
    borrowed: Annotated[
        str | None, Field(description="What it has of that beyond what it deserves.")
    ] = None
    waiting: Annotated[
        Annotated[int, Field(ge=0)] | None, Field(description="How many of its pods wait.")
    ] = None
    oldest_wait: Annotated[
        str | None, Field(description="How long the one waits that waits longest.")
    ] = None
    usage: Annotated[Usage | None, Field(description="Its past use.")] = None


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
    spec: Annotated[QueueSpec, Field(description="What is wanted of it.")]
    status: Annotated[QueueStatus | None, Field(description="What the controller says of it.")] = (
        None
    )
