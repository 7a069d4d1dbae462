"""Tests of what `hack.kind up` does, decided from what there is."""

import dataclasses
from pathlib import Path

import pytest

from hack.cluster import errors
from hack.kind import config, layout, plan

GIB = 1 << 30
WHERE = layout.Layout(Path("/src"), "gpus")
CACHE = layout.Cache(Path("/cache/kind"))
WORKERS = ("gpus-worker", "gpus-worker2")
IMAGES = ("driver@sha256:1", "workload:latest")
WANTED = plan.Wanted(WHERE, WORKERS, "runtime-1", IMAGES)
A = plan.Action


def a_node(name: str, **more: object) -> plan.Node:
    role = plan.CONTROL_PLANE if "control" in name else plan.WORKER
    mounts = WHERE.mounts(name, CACHE) if role == plan.WORKER else {}
    gpus = WANTED.runtime if role == plan.WORKER else ""
    node = plan.Node(name, role, True, mounts, gpus, frozenset(IMAGES))  # noqa: FBT003 - running
    return dataclasses.replace(node, **more)  # type: ignore[arg-type]


def a_cluster(**changed: plan.Node) -> tuple[plan.Node, ...]:
    names = ("gpus-control-plane", *WORKERS)
    return tuple(changed.get(name.replace("-", "_"), a_node(name)) for name in names)


NOTHING = plan.Facts(
    root=True,
    host=config.Host(),
    nodes=(),
    created=False,
    begun=False,
    free={Path("/var/lib/docker"): 50 * GIB},
    inotify_instances=8192,
)
MADE = dataclasses.replace(NOTHING, nodes=a_cluster(), created=True, begun=True)


def actions(facts: plan.Facts) -> list[plan.Action]:
    return [step.action for step in plan.up(WANTED, facts)]


def test_a_new_cluster_is_created_before_gpus_images_and_chart() -> None:
    assert actions(NOTHING) == [A.CREATE, A.GPUS, A.IMAGES, A.INSTALL]


def test_an_up_to_date_cluster_only_gets_the_chart() -> None:
    assert actions(MADE) == [A.INSTALL]


def test_a_change_of_code_loads_the_image_by_its_new_digest_before_the_chart() -> None:
    older = frozenset({"driver@sha256:0", "workload:latest"})
    nodes = tuple(dataclasses.replace(node, images=older) for node in MADE.nodes)
    steps = plan.up(WANTED, dataclasses.replace(MADE, nodes=nodes))
    names = tuple(node.name for node in nodes)
    assert steps == [plan.Step(A.IMAGES, names), plan.Step(A.INSTALL)]


def test_a_node_whose_container_was_stopped_is_started_with_its_gpus_and_images() -> None:
    dark = a_node("gpus-worker2", running=False, gpus="", images=frozenset())
    facts = dataclasses.replace(MADE, nodes=a_cluster(gpus_worker2=dark))
    assert plan.up(WANTED, facts) == [
        plan.Step(A.START, ("gpus-worker2",)),
        plan.Step(A.GPUS, ("gpus-worker2",)),
        plan.Step(A.IMAGES, ("gpus-worker2",)),
        plan.Step(A.INSTALL),
    ]


def test_gpus_that_do_not_run_or_run_an_older_simulator_are_started_anew() -> None:
    for key in ("", "runtime-0"):
        facts = dataclasses.replace(
            MADE, nodes=a_cluster(gpus_worker=a_node("gpus-worker", gpus=key))
        )
        assert plan.Step(A.GPUS, ("gpus-worker",)) in plan.up(WANTED, facts)


def test_a_run_that_was_cut_while_kind_made_the_cluster_begins_it_again() -> None:
    left = (a_node("gpus-control-plane"), a_node("gpus-worker"))
    facts = dataclasses.replace(NOTHING, nodes=left, begun=True)
    assert actions(facts) == [A.DELETE, A.CREATE, A.GPUS, A.IMAGES, A.INSTALL]


def test_a_low_limit_of_inotify_instances_is_raised_first() -> None:
    facts = dataclasses.replace(NOTHING, inotify_instances=128)
    assert actions(facts)[0] is A.RAISE_INOTIFY


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (dataclasses.replace(NOTHING, root=False), "sudo -E make kind-up"),
        (
            dataclasses.replace(NOTHING, free={Path("/var/lib/docker"): GIB}),
            "/var/lib/docker has 1.0 GiB free",
        ),
        (
            dataclasses.replace(
                MADE, nodes=a_cluster(gpus_worker=a_node("gpus-worker", mounts={}))
            ),
            "kind delete cluster --name gpus",
        ),
        (
            dataclasses.replace(NOTHING, nodes=(a_node("gpus-control-plane"),)),
            "not made here",
        ),
        (
            dataclasses.replace(NOTHING, nodes=a_cluster()),
            "not made here",
        ),
        (
            dataclasses.replace(MADE, nodes=a_cluster()[:2]),
            "make kind-down first",
        ),
    ],
    ids=["no root", "disk full", "without our mounts", "no worker", "not begun", "another shape"],
)
def test_impossible_requests_are_refused_with_a_remedy(facts: plan.Facts, words: str) -> None:
    with pytest.raises(errors.ClusterError) as refused:
        plan.up(WANTED, facts)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_another_checkouts_cluster_of_that_name_is_named_by_its_checkout() -> None:
    other = layout.Layout(Path("/elsewhere"), "gpus")
    node = a_node("gpus-worker", mounts=other.mounts("gpus-worker", CACHE))
    with pytest.raises(errors.ClusterError, match="make -C /elsewhere kind-down"):
        plan.up(WANTED, dataclasses.replace(MADE, nodes=a_cluster(gpus_worker=node)))


def test_a_foreign_cluster_is_not_taken_down_either() -> None:
    facts = dataclasses.replace(NOTHING, nodes=(a_node("gpus-control-plane"),))
    with pytest.raises(errors.ClusterError, match="not made here"):
        plan.refuse_foreign(WHERE, facts)


def test_a_node_image_is_not_built_where_it_does_not_fit() -> None:
    with pytest.raises(errors.ClusterError, match="XDG_CACHE_HOME"):
        plan.refuse_full_disk_for_build({Path("/cache"): GIB})
