"""Documents of the JSON API (`/api/v1`), in Kubernetes' manner: camelCase, "" or null for none.

Memory is in bytes, compute in percent of a GPU, times are RFC 3339, keys are `namespace/name`.
GPUs are counted in thousandths only where a field says so. Clients ignore unknown fields: a server
may be newer.
"""

from typing import Literal, TypeAlias

import pydantic
from pydantic import alias_generators

Mode: TypeAlias = Literal["whole", "mig", "mps", "time-slicing", "monitor"]
"""Mode in which a claim has a GPU, or a part of it."""
Health: TypeAlias = Literal["healthy", "cordoned", "unhealthy"]
"""`cordoned`: excluded from new claims on request alone; `unhealthy`: something is wrong."""
WHOLE_BAR = 1000
"""The width of a GPU drawn as a bar."""


class Document(pydantic.BaseModel):
    """A document, or a part of one."""

    model_config = pydantic.ConfigDict(
        frozen=True, alias_generator=alias_generators.to_camel, populate_by_name=True
    )


class Taint(Document):
    """A taint of a GPU's devices, other than the one of its allocator; `added` by the server."""

    key: str
    value: str = ""
    effect: str = ""
    added: str = ""


class Use(Document):
    """Activity of a claim on a device, by the node plugin (explanation/activity).

    `utilization` is percent over the last minute; `idle_since` "" while something runs, or may.
    """

    last_busy: str
    idle_since: str = ""
    utilization: int | None = None
    peak_memory: int | None = None


class Part(Document):
    """Part of one GPU that a claim has.

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
    """Part of a GPU that is kept by a Reservation, or by backfill (`reservation` "").

    Backfill keeps it for a pending pod or gang, `since` and `until` times, and says `why`:
    "known-end", all that block it declare their end, or "starved", it has waited too long.
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
    """One physical GPU. `index` is its position in PCI order on the node, which `nvlink` refers to.

    `mode` is "free" without any claim, "kept" if some of that is kept. `memory_slices` 0: no MIG.
    `offers` are the modes of the devices that it is published as now. `memory_allocated` and
    `compute_allocated` are the amounts allocated to claims; a whole GPU counts in full.
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
    """A node with GPUs; `problem` says what keeps all of it from new work, "" for nothing.

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
    """GPUs of one product: `free` are healthy ones without any claim."""

    product: str
    gpus: int
    free: int
    unhealthy: int
    memory: int
    memory_allocated: int


class Fleet(Document):
    """Figures of the fleet. `modes` counts GPUs by mode, "free" and "kept" among them.

    `idle` counts claims with an idle device. `missing` names kinds of objects that could not be
    read, in words: the figures leave them out.
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
    """Condition of a claim's device, by its driver (`status.devices[].conditions`)."""

    device: str
    type: str
    status: str
    reason: str
    message: str
    since: str = ""


class Request(Document):
    """A claim's request: `text` in words, `2 of gpu.ration.dev` or `gpu-mps.ration.dev 20Gi`."""

    name: str
    text: str


class Held(Document):
    """A device of a claim, of ours with its GPU."""

    driver: str
    pool: str
    device: str
    node: str = ""
    gpu: str = ""
    part: Part | None = None


class Claim(Document):
    """A ResourceClaim that requests our devices, or has some.

    `pods` are those that have reserved it, or that name it while it is pending; `holds` is true
    while our hold is on it (D5).
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
    """Rejected nodes, those that lack the same together. `nodes` are the first of `count`.

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
    """The nearest fit, in words. `ever` false: no node would fit even if it were empty."""

    node: str
    summary: str
    ever: bool | None = None
    leaving: tuple[str, ...] = ()


class Considered(Document):
    """A feasible node, with the policies' scores, 0 to 100."""

    node: str
    scores: dict[str, float] = pydantic.Field(default_factory=dict)


class Explanation(Document):
    """Explanation of a pod: the controller's last result, or computed now.

    `reason` and `detail` hold on every node; `message` is a refusal in a sentence, with the holders
    of the devices.
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
    """Amounts of a queue. GPUs as text ("12.5"), "" if not named.

    `models` are GPUs by product, `devices` other devices by driver.
    """

    gpus: str = ""
    memory: str = ""
    compute: str = ""
    models: dict[str, str] = pydantic.Field(default_factory=dict)
    devices: dict[str, str] = pydantic.Field(default_factory=dict)


class Queue(Document):
    """A Queue, its status, and its pods. GPUs as text, "12.5".

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
    """Devices reserved for a future workload; `evicting` are pods evicted for it."""

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
    """A requested node, and since when; `node` "" until an autoscaler has created it.

    `wanted_for` is its demand: `pod/team/train-0`, `gang/team/llm`, `reservation/team/kept`.
    """

    wanted_for: str
    since: str
    node: str = ""


class Shape(Document):
    """A kind of node that an autoscaler can create, and its nodes.

    A node of it has `gpus`, takes `startup_seconds` to arrive (`measured`, or as its document says)
    and has a relative cost; `learned`: observed on a live node. `nodes` exist, with `gpus_there`;
    `coming` are in flight, the oldest first. `resting` says why none is requested at present, "" if
    one may be.
    """

    name: str
    labels: dict[str, str] = pydantic.Field(default_factory=dict)
    gpus: int = 0
    product: str = ""
    cost: float = 0.0
    max_in_flight: int = 0
    startup_seconds: float = 0.0
    measured: bool = False
    learned: bool = False
    nodes: int = 0
    gpus_there: int = 0
    coming: tuple[Coming, ...] = ()
    resting: str = ""


class Moment(Document):
    """A recent event."""

    at: str
    reason: str
    warning: bool = False
    kind: str
    namespace: str = ""
    name: str
    message: str = ""
    count: int = 1


class Page(Document):
    """A part of a list: `total` in all; `next` is the key of the next part, "" at the end."""

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
    """Kinds of node, in the order of their document. `on` false: nodes are not requested."""

    on: bool = False
    items: tuple[Shape, ...]


class Timeline(Page):
    """Recent events, the newest first."""

    items: tuple[Moment, ...]
