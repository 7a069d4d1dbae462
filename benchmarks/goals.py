"""Every bar, once: what is wanted of which figure, and what others reach.

A goal without a figure stays on the page with its reason. Ratios are to what was measured beside
ours in the same run; an anchor was measured elsewhere or published, and says so.
"""

from typing import Final

from benchmarks.bars import Goal, Section

_GO = "NVIDIA's driver (Go) on mock NVML, 2 cores AMD EPYC, measured once beside no figure of ours"
_KAI = "KAI Scheduler, docs/scale-tests (2026-07), published; a scheduler's whole way"
_UPSTREAM = "k8s.io/dynamic-resource-allocation v0.36.3, 2 cores AMD EPYC, measured earlier"
_MASTER = "the same at its master of July 2026, whole nodes of A100; v0.36.3: 1.7 and 0.02 /s"

_BOUND = "control_plane/whole-control-plane-1-000-nodes"
_GATED = "-behind-the-scheduling-gate"
ALLOCATOR: Final = Section(
    "The allocator: speed",
    (
        Goal("allocator/1-gpu-100-nodes", ">= 3 x", "1,156 /s", _UPSTREAM),
        Goal("allocator/1-gpu-1-000-nodes", ">= 10 x", "194 /s", _UPSTREAM),
        Goal("allocator/1-gpu-5-000-nodes", ">= 10 x", "133 /s", _UPSTREAM),
        Goal("allocator/4-gpus-of-one-numa-node-1-000-nodes", ">= 10 x", "66 /s", _UPSTREAM),
        Goal("allocator/4-gpus-of-one-numa-node-5-000-nodes", ">= 10 x", "57 /s", _UPSTREAM),
        Goal("allocator/mig-1g.10gb-100-nodes-every-face", ">= 5 x", "89 /s", _MASTER),
        Goal("allocator/mig-1g.10gb-1-000-nodes-every-face", ">= 5 x", "15 /s", _MASTER),
        Goal("allocator/1-gpu-and-1-nic-of-one-pcie-root-100-nodes", ">= 5 x"),
        Goal("allocator/1-gpu-and-1-nic-of-one-pcie-root-1-000-nodes", ">= 10 x"),
        Goal("allocator/1-gpu-1-000-nodes-p99-of-a-decision", "<= 5 ms", "13.7 ms", _UPSTREAM),
        Goal("allocator/1-gpu-5-000-nodes-p99-of-a-decision", "<= 10 ms", "21 ms", _UPSTREAM),
        Goal(
            "allocator/impossible-request-9-gpus-5-000-nodes-again",
            "<= 1 ms",
            "26 ms",
            _UPSTREAM,
        ),
        Goal(
            "allocator/impossible-request-9-gpus-5-000-nodes-first-of-its-shape",
            "<= 50 ms",
            "26 ms",
            _UPSTREAM,
        ),
        Goal("allocator/8-gpus-of-one-product-7-free-on-every-node-a-node", "<= 5 ms"),
        Goal("queues/gang-of-512-500-nodes-an-empty-fleet", "<= 1 s", "48.7 s", _KAI),
        Goal("queues/gang-of-512-500-nodes-half-of-it-busy", "<= 1 s"),
        Goal("queues/gang-of-64-500-nodes-4-gpus-a-pod-half-busy", "<= 1 s"),
        Goal("queues/gang-of-512-500-nodes-one-gpu-too-few", "<= 1 s", "250 s", _KAI),
        Goal("queues/whom-to-evict-of-4-000-jobs-for-1-gpu", "<= 50 ms", "13.9 s", _KAI),
        Goal("queues/whom-to-evict-of-4-000-jobs-for-8-gpus-of-a-node", "<= 50 ms"),
        Goal("queues/whom-to-evict-of-4-000-jobs-for-a-gang-of-64", "<= 50 ms"),
        Goal(
            "allocator/end-to-end-1-000-nodes-writes-of-2-ms-1-000-claims-at-once",
            ">= 250 /s",
            "240 to 320 pods/s",
            "kube-scheduler, 500 nodes, 6 threads (scheduler_perf), published; it binds pods too",
        ),
        Goal(
            "allocator/end-to-end-1-000-nodes-writes-of-2-ms-at-half-a-burst-s-rate-p99",
            "<= 100 ms",
        ),
        *(
            Goal(f"{_BOUND}{gate}-{what}", bar)
            for gate in ("", _GATED)
            for what, bar in (
                ("pods-bound", ">= 1.5 x"),
                ("made-to-bound-at-5-pods-s-p50", "<= 1.2 x"),
                ("made-to-bound-at-5-pods-s-p99", "<= 1.5 x"),
            )
        ),
    ),
)

_FGD = "FGD, ATC'23, mean of ten draws, published"
QUALITY: Final = Section(
    "The allocator: quality",
    (
        Goal("placement/default-gpus-in-use-beside-fgd", ">= 1 x", "95.39 %", _FGD),
        Goal("placement/default-when-100-is-asked", ">= 1 x", "95.23 %", _FGD),
        Goal("placement/multigpu50-gpus-in-use-beside-fgd", ">= 1 x", "97.18 %", _FGD),
        Goal("placement/gpuspec33-gpus-in-use-beside-fgd", ">= 1 x", "94.55 %", _FGD),
        Goal("placement/gpuspec33-when-100-is-asked", ">= 1 x", "87.84 %", _FGD),
        Goal("placement/default-decisions-on-1-213-nodes", ">= 2000 /s"),
        Goal("placement/multigpu50-decisions-on-1-213-nodes", ">= 2000 /s"),
        Goal("placement/gpuspec33-decisions-on-1-213-nodes", ">= 2000 /s"),
        *(
            Goal(f"placement/mig-{mix}-load-{load}-instances-with-room-beside-the-best-of-them")
            for mix in ("any", "small", "large")
            for load in ("0.85", "1.0")
        ),
        Goal(
            "held/mig-streams",
            ">= 0.999 x",
            name="MIG, streams of 20,000 to 80,000: instances with room, beside the best of others",
            held="tests/oracle/test_streams.py",
        ),
        Goal(
            "quality/mig-on-one-gpu-memory-accepted-of-the-optimum-the-worst-of-6-mixes", ">= 98 %"
        ),
        Goal(
            "held/mig-optimum",
            ">= 98 %",
            name="MIG on two GPUs, and batches on four and six at load 0.85, of the optimum",
            held="tests/oracle/test_layouts.py",
        ),
        Goal("quality/gangs-near-each-other-on-8-nodes-of-the-optimum", ">= 98 %"),
        Goal(
            "quality/gpus-between-a-queue-and-its-exact-share-the-worst-queue-of-20-trees", "<= 1"
        ),
        Goal("quality/whom-to-evict-for-a-pod-plans-that-are-the-cheapest-there-are", ">= 95 %"),
        Goal("quality/whom-to-evict-for-a-gang-plans-that-are-the-cheapest-there-are", ">= 95 %"),
        Goal("queues/gavel-jain-s-index-of-shares-to-fair-ones-beside-fifo", ">= 1 x"),
        Goal("queues/gavel-jain-s-index-of-shares-to-fair-ones-beside-strict-priority", ">= 1 x"),
        Goal("queues/gavel-finish-time-fairness-of-the-worst-team-beside-fifo", "<= 1 x"),
        Goal(
            "queues/gavel-finish-time-fairness-of-the-worst-team-beside-strict-priority", "<= 1 x"
        ),
    ),
)

PREPARE: Final = Section(
    "NodePrepareResources",
    (
        Goal("node/prepare-one-at-a-time-p50", "<= 3.0 ms", "2.1 to 2.3 ms", _GO),
        Goal("node/prepare-one-at-a-time-p99", "<= 6.5 ms", "4.2 to 4.4 ms", _GO),
        Goal("node/8-prepares-at-once-wall-for-all", "<= 30 ms", "620 ms", _GO),
        Goal("node/prepare-again-p50", "<= 1.0 ms"),
        Goal("node/prepare-with-an-mps-daemon-s-start", "<= 250 ms", ">= 1 s", "by its code, Go"),
        Goal("node/unprepare-one-at-a-time-p50", "<= 2 ms", "1.1 ms", _GO),
        Goal("node/unprepare-one-at-a-time-p99", "<= 5 ms", "2.3 ms", _GO),
        Goal("node/plugin-rss-idle", "<= 55 MiB", "54 MB", _GO),
        Goal("node/rss-growth-over-10000-cycles", "<= 2 MiB", "6 MB in 500", _GO),
        Goal("node/prepare-32-results-and-32-x-10-kib-of-configuration", "<= 1000 ms"),
    ),
)

BESIDE: Final = Section(
    "The node beside the least Go driver on upstream's helper",
    (
        Goal("beside/prepare-one-at-a-time-p50", "<= 1.3 x"),
        Goal("beside/prepare-one-at-a-time-p99", "<= 1.5 x"),
        Goal("beside/8-prepares-at-once-wall-for-all", "<= 1 x"),
        Goal("beside/prepare-again-p50", "<= 1.5 x"),
        Goal("beside/unprepare-one-at-a-time-p50", "<= 1.5 x"),
        Goal("beside/unprepare-one-at-a-time-p99", "<= 1.5 x"),
        Goal("beside/cpu-of-a-prepare-the-same-again-an-unprepare"),
        Goal("beside/rss-idle"),
        Goal("beside/start-to-first-slice", "<= 1 x"),
        Goal("beside/least-python-plugin-prepare-p50"),
        Goal("beside/least-python-plugin-prepare-again-p50"),
        Goal("beside/least-python-plugin-8-prepares-at-once"),
        Goal("beside/least-python-plugin-cpu-of-prepare-again-unprepare"),
        Goal("beside/least-python-plugin-rss-idle"),
    ),
)

BESIDE_NVIDIA: Final = Section(
    "The node beside NVIDIA's driver, without its limit of requests",
    tuple(
        Goal(f"beside/beside-nvidia-s-driver-{what}", bar)
        for what, bar in (
            ("prepare-p50", "<= 1 x"),
            ("prepare-p99", "<= 1 x"),
            ("prepare-again-p50", "<= 1 x"),
            ("unprepare-p50", "<= 1 x"),
            ("8-prepares-at-once-p50", "<= 1 x"),
            ("prepare-of-a-mig-device-p50", "<= 1 x"),
            ("unprepare-of-a-mig-device-p50", "<= 1 x"),
            ("cpu-of-prepare-again-unprepare", "<= 1 x"),
            ("rss-idle", ""),
        )
    ),
)

PUBLISHING: Final = Section(
    "ResourceSlices",
    (
        Goal("node/plugin-start-to-first-slice", "<= 1.0 s", "1.04 s", _GO),
        Goal("node/kubelet-s-wipe-to-slices-again", "<= 5 s"),
        Goal("node/xid-to-its-taint-on-the-api-p99", "<= 100 ms"),
        Goal("node/hgx-b200-gpus-read-to-slices-planned", "<= 300 ms"),
        Goal("node/hgx-a100-16-gpus-read-to-slices-planned", "<= 300 ms"),
        Goal(
            "held/no-write",
            "<= 0",
            name="writes when nothing changed",
            held="tests/component/kubeletplugin/publish/test_publisher.py",
        ),
        Goal(
            "held/storm",
            "<= 100 /s",
            name="writes of 5,000 nodes that publish anew within 60 s",
            absent="5,000 plugins are not to be had on this machine: 500 take its CPUs for 45 s. "
            "A restart writes nothing; a change is not delayed, and is 5 slices of 8 H100",
        ),
        Goal("allocator/slices-of-5-000-nodes-x-8-gpus-json-to-picture", "<= 1 s"),
        Goal("allocator/slices-of-1-000-nodes-every-face-json-to-picture", "<= 1.5 s"),
    ),
)

MEMORY: Final = Section(
    "Memory",
    (
        Goal(
            "allocator/rss-5-000-nodes-x-8-gpus-20-000-claims",
            "<= 250 MiB",
            "407 MB",
            f"{_UPSTREAM}, without claims",
        ),
        Goal(
            "allocator/rss-1-000-nodes-x-8-gpus-every-face",
            "<= 500 MiB",
            "1.1 to 2.7 GB",
            _UPSTREAM,
        ),
        Goal(
            "allocator/memory-of-1-000-claims-with-pods",
            "<= 2 MiB",
            "7.4 MB",
            "claims without pods, as plain dictionaries, measured earlier",
        ),
        Goal(
            "allocator/memory-of-1-000-slices-of-8-gpus",
            "<= 6 MiB",
            "161 MB",
            "models of the official Python client, measured earlier",
        ),
    ),
)

HOLD: Final = Section(
    "What must hold under load",
    (
        Goal("hold/prepare-at-256-live-claims-on-8-gpus-p50", "<= 20 ms"),
        Goal("hold/110-pods-of-a-node-in-one-burst-all-prepared", "<= 15 s"),
        Goal("soak/claim-cycles-a-second", ">= 5 /s"),
        Goal("soak/claim-cycles-real-api-server", ">= 36000"),
        Goal("soak/claims-lost", "<= 0"),
        Goal("soak/breaches", "<= 0"),
        Goal("soak/longest-wait-for-prepare-troubles-included", "<= 60 s"),
        Goal("soak/rss-of-the-plugin-grown", "flat"),
        Goal("soak/open-files-of-the-plugin-grown", "flat"),
        Goal("soak/threads-of-the-plugin-grown", "flat"),
        Goal("soak/rss-of-the-supervisor-grown", "flat"),
        Goal("soak/open-files-of-the-supervisor-grown", "flat"),
        Goal("soak/threads-of-the-supervisor-grown", "flat"),
        Goal("hold/decisions-at-500-nodes-x-8-gpus", ">= 50 /s"),
        Goal(
            "hold/full-resync-of-5-000-claims-a-controller-s-start-to-its-first-decision",
            "<= 3 s",
        ),
        Goal("hold/rss-of-a-standby-controller", "<= 256 MiB"),
        Goal("node/plugin-rss-idle", "<= 55 MiB"),
        Goal("hold/cpu-of-an-idle-plugin", "<= 0.3 %"),
        Goal("hold/api-writes-of-an-idle-plugin-an-hour", "<= 0"),
    ),
)

_HERD = "herd/500-plugins-at-once"
_STARTS = ("nothing-published-yet", "all-published-before", "all-slices-deleted-under-them")
SCALE: Final = Section(
    "At scale",
    (
        *(
            Goal(f"control_plane_{size}{gate}-{what}", bar)
            for gate in ("", _GATED)
            for size in (
                "5000/whole-control-plane-5-000-nodes",
                "kwok/whole-control-plane-1-000-nodes-their-kubelets-played-by-kwok",
            )
            for what, bar in (
                ("pods-bound", ">= 1.5 x"),
                ("made-to-bound-at-3-pods-s-p50", "<= 1 x"),
                ("made-to-bound-at-3-pods-s-p95", "<= 1 x"),
            )
        ),
        *(Goal(f"{_HERD}-{how}-lists-a-plugin", "<= 2") for how in _STARTS),
        *(Goal(f"{_HERD}-{how}-unfiltered-lists", "<= 0") for how in _STARTS),
        Goal(f"{_HERD}-all-published-before-writes-a-plugin", "<= 0"),
        *(Goal(f"{_HERD}-{how}-until-the-last-is-done") for how in _STARTS),
        *(Goal(f"{_HERD}-{how}-most-writes-in-a-second") for how in _STARTS),
    ),
)

_RECOVERIES = (
    *("plugin-killed", "supervisor-killed", "leader-killed", "leader-frozen"),
    *("leader-partitioned", "kubelet-killed", "containerd-killed", "apiserver-killed"),
    *("etcd-killed", "gpu-lost", "xid-fatal", "state-full", "cdi-full", "watches-lie"),
)
CHAOS: Final = Section(
    "What must hold while everything breaks",
    (
        Goal("chaos/faults", ">= 500"),
        Goal("chaos/breaches", "<= 0"),
        Goal("chaos/hardware-in-two-claims", "<= 0"),
        Goal("chaos/longest-recovery-from-node-rebooted", "<= 120 s"),
        *(Goal(f"chaos/longest-recovery-from-{one}", "<= 90 s") for one in _RECOVERIES),
        Goal("soak_controllers/pods", ">= 20000"),
        Goal("soak_controllers/breaches", "<= 0"),
        Goal("soak_controllers/rss-of-the-leading-controller-grown", "flat"),
        Goal("soak_pods/pods", ">= 2500"),
        Goal("soak_pods/breaches", "<= 0"),
        Goal("soak_pods/hardware-in-two-claims", "<= 0"),
    ),
)

_OF_NODES = (
    *(("cost-beside-always-on", "<= 1 x"), ("mean-wait-beside-one-node-per-pod", "<= 1 x")),
    ("longest-wait-beside-one-node-per-pod", "<= 6.0 min"),
)
NODES: Final = Section(
    "Nodes on demand",
    tuple(
        Goal(f"nodes/{trace}-{what}", bar)
        for trace in ("openb", "gavel")
        for what, bar in _OF_NODES
    ),
)

SECTIONS: Final = (
    ALLOCATOR,
    QUALITY,
    PREPARE,
    BESIDE,
    BESIDE_NVIDIA,
    PUBLISHING,
    MEMORY,
    HOLD,
    SCALE,
    CHAOS,
    NODES,
)


def bars() -> dict[str, str]:
    """The first bar of each figure, by its id."""
    found: dict[str, str] = {}
    for section in SECTIONS:
        for goal in section.goals:
            found.setdefault(goal.id, goal.bar)
    return found
