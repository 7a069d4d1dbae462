from dataclasses import replace

import pytest

from driver import names
from driver.resources import queues
from driver.resources.core import pods
from driver.scheduling.queues import tree
from tests.support.builders import objects
from tests.support.builders.queues import members, named, queue


def a_pod(namespace: str, **labels: str) -> pods.Pod:
    return replace(objects.pod("p"), namespace=namespace, labels=labels)


def faults(*results: queues.Queue) -> dict[str, str]:
    return {name: str(fault) for name, fault in tree.build_tree(results).faults.items()}


def test_a_path_leads_from_the_top_to_the_leaf() -> None:
    queue_tree = tree.build_tree([queue("c", "b"), queue("b", "a"), queue("a"), queue("d")])
    assert queue_tree.path("c") == ("a", "b", "c")
    assert queue_tree.leaves == ("", "c", "d")
    assert [*queue_tree.bottom_up()].index("c") < [*queue_tree.bottom_up()].index("a")


def test_a_non_leaf_counts_as_no_queue() -> None:
    queue_tree = tree.build_tree([queue("b", "a"), queue("a")])
    assert (
        queue_tree.queue_or_implicit("a"),
        queue_tree.queue_or_implicit("gone"),
        queue_tree.queue_or_implicit("b"),
    ) == ("", "", "b")
    assert queue_tree.path("gone") == ("",)


def test_every_queue_of_a_circle_is_told_and_nothing_else_is_disturbed() -> None:
    result = faults(queue("a", "c"), queue("b", "a"), queue("c", "b"), queue("d"), queue("e", "c"))
    assert result["a"] == "spec.parent: the queue is its own ancestor: a -> c -> b -> a"
    assert [*result] == ["a", "b", "c", "e"]
    assert result["e"] == "spec.parent: queue c is not accepted (spec.parent)"


def test_a_queue_may_not_be_its_own_parent() -> None:
    assert faults(queue("a", "a"))["a"].endswith("a -> a")


def test_a_parent_must_be_there() -> None:
    result = faults(queue("a", "x"), queue("b", "a"), queue("c"))
    assert result == {
        "a": "spec.parent: queue x does not exist",
        "b": "spec.parent: queue a is not accepted (spec.parent)",
    }


@pytest.mark.parametrize(
    ("limit", "deserved", "message"),
    [
        (named(3), named(4), "spec.limit.gpus: 3 GPUs is less than the 4 GPUs deserved"),
        (
            named(memory=1 << 30),
            named(memory=2 << 30),
            "spec.limit.memory: 1Gi of GPU memory is less than the 2Gi of GPU memory deserved",
        ),
        (
            named(compute=50),
            named(compute=100),
            "spec.limit.compute: 50% of GPU compute is less than the 100% of GPU compute deserved",
        ),
        (
            named(models={"T4": 1000}),
            named(models={"T4": 1500}),
            "spec.limit.models: 1 GPU (T4) is less than the 1.5 GPUs (T4) deserved",
        ),
    ],
)
def test_a_limit_below_what_is_deserved_is_told_by_its_field(
    limit: queues.Amounts, deserved: queues.Amounts, message: str
) -> None:
    result = faults(queue("a", limit=limit, deserved=deserved), queue("b"))
    assert result == {"a": f"{message}; expected at least as much"}


def test_a_limit_on_what_is_not_deserved_is_fine() -> None:
    assert not faults(queue("a", limit=4, deserved=named(memory=1)))


def test_children_of_a_queue_with_members_are_left_out_and_it_stays() -> None:
    parent = queue("a", members=members("vision"))
    queue_tree = tree.build_tree([parent, queue("b", "a")])
    assert str(queue_tree.faults["b"]) == (
        "spec.parent: queue a has members: pods belong to queues without children; "
        "expected a queue without members"
    )
    assert queue_tree.pod_queue(a_pod("vision")) == "a"


def test_the_youngest_child_is_omitted_when_children_deserve_more_than_the_parent() -> None:
    result = faults(
        queue("p", limit=16),
        queue("new", "p", deserved=6, created="2026-11-22T10:00:00Z"),
        queue("old", "p", deserved=12, created="2026-11-21T10:00:00Z"),
        queue("small", "p", deserved=4, created="2026-11-22T11:00:00Z"),
    )
    assert result == {
        "new": (
            "spec.deserved.gpus: with the queues beside new that is 18 GPUs deserved, and queue p "
            "has 16 GPUs at most; expected together no more than the parent's limit"
        )
    }


def test_without_borrowing_children_may_deserve_what_the_parent_does() -> None:
    result = faults(queue("p", deserved=8, borrowing=False), queue("a", "p", deserved=9))
    assert [*result] == ["a"]


def test_grandchildren_count_too() -> None:
    result = faults(
        queue("p", limit=4),
        queue("c", "p"),
        queue("x", "c", deserved=3),
        queue("y", "c", deserved=3),
    )
    assert [*result] == ["c", "x", "y"]


def test_a_parent_deserves_at_least_what_its_children_do() -> None:
    queue_tree = tree.build_tree(
        [queue("p", deserved=2), queue("a", "p", deserved=3), queue("b", "p", deserved=1)]
    )
    assert queue_tree.deserved["p"].gpus == 4000


def test_pods_belong_by_their_namespace() -> None:
    queue_tree = tree.build_tree(
        [queue("a", members=members("vision")), queue("b", members=members("speech"))]
    )
    assert queue_tree.pod_queue(a_pod("vision")) == "a"
    assert queue_tree.pod_queue(a_pod("other")) == ""


def test_more_labels_come_first_then_the_namespace_then_the_name() -> None:
    queue_tree = tree.build_tree(
        [
            queue("any", members=members("")),
            queue("space", members=members("vision")),
            queue("also", members=members("vision")),
            queue("one", members=members("", team="x")),
            queue("two", members=members("", team="x", tier="y")),
        ]
    )
    assert queue_tree.pod_queue(a_pod("vision", team="x", tier="y")) == "two"
    assert queue_tree.pod_queue(a_pod("vision", team="x")) == "one"
    assert queue_tree.pod_queue(a_pod("vision")) == "also"
    assert queue_tree.pod_queue(a_pod("speech")) == "any"


def test_a_label_names_a_queue_that_takes_the_namespace() -> None:
    queue_tree = tree.build_tree(
        [
            queue("p"),
            queue("open", "p"),
            queue("a", members=members("vision", team="x")),
            queue("b", members=members("speech")),
        ]
    )

    def labelled(name: str, namespace: str = "vision") -> str:
        return queue_tree.pod_queue(replace(a_pod(namespace), labels={names.QUEUE_LABEL: name}))

    assert labelled("open") == "open"
    assert labelled("a") == "a"
    assert labelled("b") == ""
    assert labelled("p") == ""
    assert labelled("gone", "speech") == "b"


def test_no_queue_at_all_is_one_implicit_queue() -> None:
    queue_tree = tree.build_tree([])
    assert queue_tree.is_implicit_only
    assert queue_tree.leaves == ("",)
    assert queue_tree.pod_queue(a_pod("vision")) == ""
