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

import pydantic

from driver.api import crd

_MOST_MEMBERS = 256
_MOST_MODELS = 16
Reclaim = Literal["LowerPriority", "Any", "Never"]
IdleAction = Literal["report", "preferAsVictim", "evict"]


class ModelAmount(crd.Strict):
    """So many GPUs of one model, by `productName`."""

    product: Annotated[str, pydantic.Field(min_length=1, max_length=64)]
    gpus: Annotated[
        crd.GpuCount,
        pydantic.BeforeValidator(crd.number, json_schema_input_type=float | crd.GpuCount),
    ]


class Amounts(crd.Strict):
    """Amounts of GPU; what is not named is not bounded.

    `gpus` counts GPUs: a share or a MIG device is the part of a GPU that it takes of what is
    scarcest. `compute` is in percent of one GPU: 400 is four GPUs' worth. `models` are of single
    models, beside `gpus` of all.
    """

    gpus: (
        Annotated[
            crd.GpuCount,
            pydantic.BeforeValidator(crd.number, json_schema_input_type=float | crd.GpuCount),
        ]
        | None
    ) = None
    memory: crd.Memory | None = None
    compute: Annotated[int, pydantic.Field(ge=0, le=1_000_000_000)] | None = None
    models: Annotated[tuple[ModelAmount, ...], pydantic.Field(max_length=_MOST_MODELS)] = ()


class Member(crd.Strict):
    """Whose pods belong to the queue: those of a namespace, with all of some labels.

    "" as namespace is every namespace. Of several queues the one that names more of the pod's
    labels has it, then one that names its namespace, then the first by name.
    """

    namespace: Annotated[str, pydantic.Field(max_length=63)] = ""
    labels: Annotated[dict[str, str], pydantic.Field(max_length=16, default_factory=dict)]


class IdleReclaim(crd.Strict):
    """What is done with a pod whose GPUs did nothing for `after`."""

    after: crd.Duration
    action: IdleAction = "report"


class QueueSpec(crd.Strict):
    """What a queue has a right to, and what others have a right to of it.

    - `weight`: its part, beside its siblings', of what nobody deserves or asks for.
    - `deserved`: what it has before siblings get more than they deserve; none by default.
    - `limit`: what it and its children never exceed together. Without `borrowing` that is
      `deserved`.
    - `half_life`: past use counts against it, half as much after that time; "" counts only now.
    - `preemptible`: whether its pods may be evicted for others' at all; `reclaim` says for whom
      what it has beyond its fair share goes: for pods of `LowerPriority` queues' betters, for `Any`
      pod of a queue below its share, or `Never`.
    - `min_run_time`: a pod is not evicted for another before it ran so long.
    - `starvation_bound`: a pod that waited so long goes before all that did not.
    """

    parent: crd.Name | None = None
    weight: Annotated[int, pydantic.Field(ge=1, le=1_000_000)] = 1
    deserved: Amounts = Amounts()
    limit: Amounts = Amounts()
    borrowing: bool = True
    members: Annotated[tuple[Member, ...], pydantic.Field(max_length=_MOST_MEMBERS)] = ()
    half_life: crd.Duration | None = None
    preemptible: bool = True
    reclaim: Reclaim = "LowerPriority"
    min_run_time: crd.Duration | None = None
    starvation_bound: crd.Duration = "1h"
    idle_reclaim: IdleReclaim | None = None
