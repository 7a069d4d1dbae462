"""The documents of the JSON API (`/api/v1`), in Kubernetes' manner: camelCase, "" or null for none.

Memory is in bytes, compute in percent of a GPU, times are RFC 3339, keys are `namespace/name`.
GPUs are counted in thousandths only where a field says so. Who reads them ignores fields that it
does not know: a server may be newer.
"""

from typing import Literal, TypeAlias

import pydantic
from pydantic import alias_generators

Mode: TypeAlias = Literal["whole", "mig", "mps", "time-slicing", "monitor"]
"""How a claim has a GPU, or a part of it."""
Health: TypeAlias = Literal["healthy", "cordoned", "unhealthy"]
"""`cordoned`: kept from new claims by somebody's wish alone; `unhealthy`: something is wrong."""
WHOLE_BAR = 1000
"""The width of a GPU drawn as a bar."""


class Document(pydantic.BaseModel):
    """One document, or a part of one."""

    model_config = pydantic.ConfigDict(
        frozen=True, alias_generator=alias_generators.to_camel, populate_by_name=True
    )


class Taint(Document):
    """A taint of a GPU's devices that says more than who allocates; `added` by the server."""

    key: str
    value: str = ""
    effect: str = ""
    added: str = ""


class Use(Document):
    """What a claim does with a device, by the node plugin (explanation/activity).

    `utilization` is percent over the last minute; `idle_since` "" while something runs, or may.
    """

    last_busy: str
    idle_since: str = ""
    utilization: int | None = None
    peak_memory: int | None = None


class Part(Document):
    """What one claim has of one GPU.

    `start` and `width` are its place on the GPU drawn as a bar of 1000: of a MIG device its
    memory slices as they lie, of a share its memory, left to right by age.
    """

    claim: str
    claim_name: str = ""
    request: str
    device: str
    share_id: str = ""
    mode: Mode
    start: int
    width: int
    memory: int = 0
    compute: int = 0
    shares: int = 0
    profile: str = ""
    pods: tuple[str, ...] = ()
    queue: str = ""
    since: str = ""
    ready: bool | None = None
    problem: str = ""
    admin: bool = False
    use: Use | None = None


class Kept(Document):
    """What of a GPU is kept for somebody: by a Reservation, or by backfill (`reservation` "").

    Backfill keeps it for a pod or gang that waits, `since` and `until` times, and says `why`:
    "known-end", all in its way declares when it ends, or "starved", it has waited too long.
    """

    reservation: str = ""
    holder: str
    since: str = ""
    until: str = ""
    why: str = ""
    device: str
    mode: Mode
    start: int
    width: int


class Gpu(Document):
    """One physical GPU. `index` is its place in PCI order on the node, which `nvlink` refers to.

    `mode` is "free" where nobody has any of it, "kept" where some of that is kept for somebody.
    `memory_slices` 0: no MIG. `offers` are the modes of the devices that it is published as now.
    `memory_allocated` and `compute_allocated` are what claims have been given; a GPU that is given
    whole is given in full.
    """

    node: str
    name: str
    uuid: str = ""
    product: str = ""
    index: int
    pci: str = ""
    pcie_root: str = ""
    numa: int | None = None
    memory: int = 0
    memory_slices: int = 0
    mode: Mode | Literal["free", "kept"]
    allocator: Literal["controller", "scheduler"]
    offers: tuple[Mode, ...] = ()
    health: Health = "healthy"
    taints: tuple[Taint, ...] = ()
    memory_allocated: int = 0
    compute_allocated: int = 0
    nvlink: tuple[int, ...] = ()
    parts: tuple[Part, ...] = ()
    kept: tuple[Kept, ...] = ()


class Node(Document):
    """A node with GPUs; `problem` says what keeps all of it from new work, "" where nothing does.

    `complete` is false while slices of its pool are missing.
    """

    name: str
    ready: bool = True
    cordoned: bool = False
    problem: str = ""
    complete: bool = True
    taints: tuple[Taint, ...] = ()
    allocators: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    memory: int = 0
    memory_allocated: int = 0
    gpus: tuple[Gpu, ...] = ()
    pods: tuple[str, ...] = ()


class Product(Document):
    """The GPUs of one product: `free` are those of which nobody has anything, and healthy."""

    product: str
    gpus: int
    free: int
    unhealthy: int
    memory: int
    memory_allocated: int


class Fleet(Document):
    """All of it in figures. `modes` counts GPUs by mode, "free" and "kept" among them.

    `idle` counts claims that do nothing with a device that they have. `missing` names kinds of
    objects that could not be read, in words: the figures leave them out.
    """

    at: str
    driver: str
    nodes: int = 0
    nodes_ready: int = 0
    gpus: int = 0
    modes: dict[str, int] = pydantic.Field(default_factory=dict)
    unhealthy: int = 0
    cordoned: int = 0
    memory: int = 0
    memory_allocated: int = 0
    compute_allocated: int = 0
    claims: int = 0
    pods: int = 0
    waiting: int = 0
    idle: int = 0
    queues: int = 0
    reservations: int = 0
    products: tuple[Product, ...] = ()
    missing: tuple[str, ...] = ()


class Condition(Document):
    """What a driver says of a claim's device (`status.devices[].conditions`)."""

    device: str
    type: str
    status: str
    reason: str
    message: str
    since: str = ""


class Request(Document):
    """What a claim asks: `text` in words, `2 of gpu.ration.dev` or `gpu-mps.ration.dev 20Gi`."""

    name: str
    text: str


class Held(Document):
    """A device that a claim has, of ours with where its GPU is."""

    driver: str
    pool: str
    device: str
    node: str = ""
    gpu: str = ""
    part: Part | None = None


class Claim(Document):
    """A ResourceClaim that asks for devices of ours, or has some.

    `pods` are those that have reserved it, or that name it while it waits; `holds` whether our
    hold is on it still (D5).
    """

    namespace: str
    name: str
    uid: str = ""
    state: Literal["pending", "allocated", "reserved", "deleting"]
    requests: tuple[Request, ...] = ()
    devices: tuple[Held, ...] = ()
    node: str = ""
    pods: tuple[str, ...] = ()
    queue: str = ""
    since: str = ""
    holds: bool = False
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class Refusal(Document):
    """Why nodes do not do: together those that lack the same. `nodes` are the first of `count`.

    Without a `reason`, `fits` of the `wanted` devices are there, and `devices` counts by reason
    why the others are not.
    """

    count: int
    nodes: tuple[str, ...]
    reason: str = ""
    detail: str = ""
    fits: int = 0
    wanted: int = 0
    devices: dict[str, int] = pydantic.Field(default_factory=dict)
    gave_up: bool = False


class Nearest(Document):
    """Where it comes nearest, in words. `ever` false: no node would do even with nothing on it."""

    node: str
    summary: str
    ever: bool | None = None
    leaving: tuple[str, ...] = ()


class Considered(Document):
    """A node that would do, with the policies' scores, 0 to 100."""

    node: str
    scores: dict[str, float] = pydantic.Field(default_factory=dict)


class Explanation(Document):
    """Why a pod is where it is, or is nowhere: by the controller's last answer, or worked out now.

    `reason` and `detail` are of what holds on every node; `message` is a refusal in a sentence,
    with who has the devices.
    """

    at: str = ""
    why: str = ""
    node: str = ""
    message: str = ""
    reason: str = ""
    detail: str = ""
    considered: tuple[Considered, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    nearest: Nearest | None = None


class Pod(Document):
    """A pod with claims.

    `state` is `waiting` until all its claims have devices, `placed` until it runs. `reason` and
    `message` say what it waits for, in words; `advice` what may be done about it.
    """

    namespace: str
    name: str
    uid: str = ""
    state: Literal["waiting", "placed", "running", "finished", "leaving"]
    phase: str = ""
    node: str = ""
    created: str = ""
    since: str = ""
    priority: int = 0
    queue: str = ""
    gang: str = ""
    owner: str = ""
    claims: tuple[str, ...] = ()
    reason: str = ""
    message: str = ""
    advice: str = ""
    explanation: Explanation | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class Amounts(Document):
    """Of a queue. GPUs as text ("12.5"), "" where not named; `models` GPUs by product."""

    gpus: str = ""
    memory: str = ""
    compute: str = ""
    models: dict[str, str] = pydantic.Field(default_factory=dict)


class Queue(Document):
    """A Queue, how it stands by its status, and what is in it. GPUs as text, "12.5".

    `accepted` false: it is left out, `problem` says why. `depth` 0: no parent. `kept` are GPUs that
    backfill keeps idle for its first pod or gang, until a time; "" for none.
    """

    name: str
    parent: str = ""
    children: tuple[str, ...] = ()
    depth: int = 0
    weight: int = 1
    deserved: Amounts = Amounts()
    limit: Amounts = Amounts()
    accepted: bool = True
    problem: str = ""
    allocated: str = ""
    memory: str = ""
    compute: str = ""
    fair_share: str = ""
    deserved_share: str = ""
    borrowed: str = ""
    kept: str = ""
    kept_until: str = ""
    waiting: int = 0
    oldest_wait: str = ""
    members: tuple[str, ...] = ()
    borrowing: bool = True
    preemptible: bool = True
    pods: tuple[Pod, ...] = ()


class Reservation(Document):
    """Devices that are kept for a workload that is coming; `evicting` are pods that go for it."""

    namespace: str
    name: str
    phase: str
    holder: str
    start: str = ""
    created: str = ""
    count: int = 1
    devices: tuple[Held, ...] = ()
    evicting: tuple[str, ...] = ()


class Coming(Document):
    """A node that is asked for, and since when; `node` "" until an autoscaler has made it.

    `wanted_for` is what waits for it: `pod/team/train-0`, `gang/team/llm`, `reservation/team/kept`.
    """

    wanted_for: str
    since: str
    node: str = ""


class Shape(Document):
    """A kind of node that an autoscaler can bring, and what of it there is.

    A node of it has so many `gpus`, takes `startup_seconds` to come (`measured`, or as its document
    says) and costs so much beside the others; `learned`: a live node told what it is like. `nodes`
    are there, with `gpus_there`; `coming` are on their way, the oldest first. `resting` says why
    none is asked for at present, "" where one may be.
    """

    name: str
    labels: dict[str, str] = pydantic.Field(default_factory=dict)
    gpus: int = 0
    product: str = ""
    cost: float = 0.0
    most: int = 0
    startup_seconds: float = 0.0
    measured: bool = False
    learned: bool = False
    nodes: int = 0
    gpus_there: int = 0
    coming: tuple[Coming, ...] = ()
    resting: str = ""


class Moment(Document):
    """Something that happened, as an event tells it."""

    at: str
    reason: str
    warning: bool = False
    kind: str
    namespace: str = ""
    name: str
    message: str = ""
    count: int = 1


class Page(Document):
    """A part of a list: `total` in all; `next` is asked for what follows, "" at the end."""

    total: int
    next: str = ""


class Nodes(Page):
    """Nodes by name."""

    items: tuple[Node, ...]


class Claims(Page):
    """Claims by key."""

    items: tuple[Claim, ...]


class Pods(Page):
    """Pods: those that wait by age, others by key."""

    items: tuple[Pod, ...]


class Queues(Page):
    """Queues, each before its children."""

    items: tuple[Queue, ...]


class Reservations(Page):
    """Reservations by key."""

    items: tuple[Reservation, ...]


class Shapes(Page):
    """Kinds of node, in the order of their document. `on` false: nodes are not asked for."""

    on: bool = False
    items: tuple[Shape, ...]


class Timeline(Page):
    """What happened, the newest first."""

    items: tuple[Moment, ...]
