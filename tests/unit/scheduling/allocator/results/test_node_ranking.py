from collections.abc import Sequence

import pytest

from driver import ids, reasons
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import base
from driver.scheduling.allocator.results import node_ranking, node_result
from tests.support import snapshots
from tests.support.builders import objects

A, B, C = (ids.NodeName(f"node-{name}") for name in "abc")
FULL = allocator_types.NodeRejection(reasons.Reason.NODE_FULL, "full")
VIEW = snapshots.view(*(objects.a_slice(name, 1) for name in (A, B, C)))


class Changing:
    """The nodes, and which of them changed since the last look."""

    def __init__(self) -> None:
        self.nodes = VIEW.nodes
        self.revision = 0
        self.changed: Sequence[ids.NodeName] | None = None

    def changed_since(self, mark: int) -> tuple[int, Sequence[ids.NodeName]] | None:
        return None if self.changed is None else (mark + 1, self.changed)


class Asked:
    """A board, what nodes would answer, and who was asked."""

    def __init__(self, **fields: node_result.NodeResult) -> None:
        self.view = Changing()
        self.found = {ids.NodeName(f"node-{key}"): answer for key, answer in fields.items()}
        self.names: list[ids.NodeName] = []
        self.board = node_ranking.NodeRanking()
        self.renew()

    def renew(self) -> list[ids.NodeName]:
        """Ask those that changed, at first everybody; who was asked."""
        self.names.clear()
        self.board.refresh(self.view, self.answer)  # type: ignore[arg-type]
        self.view.changed = []
        return self.names

    def change(self, name: ids.NodeName, answer: node_result.NodeResult) -> list[ids.NodeName]:
        self.found[name] = answer
        self.view.changed = [name]
        return self.renew()

    def answer(self, name: ids.NodeName) -> node_result.NodeResult:
        self.names.append(name)
        return self.found.get(name)

    def best(self, *avoid: ids.NodeName) -> str | None:
        node_names = self.best_of(1, *avoid)
        return node_names[0] if node_names else None

    def best_of(self, most: int, *avoid: ids.NodeName) -> list[ids.NodeName]:
        return [name for name, _ in self.board.best(most, dict.fromkeys(avoid, "words"))]


def fit(name: ids.NodeName, free: int) -> node_result.Fit:
    room = base.NodeCapacity(0, 0, (), base.NodeTopology(()))
    return node_result.Fit((0, 0, (), free), (), base.Candidate(name, room, room, ()), (), 0)


def test_all_nodes_are_evaluated_once_and_then_changed_ones() -> None:
    request = Asked(a=fit(A, 2), b=fit(B, 1))
    assert request.names == [A, B, C]
    assert request.renew() == []
    assert request.change(B, fit(B, 3)) == [B]


def test_the_lowest_rank_is_best_as_of_the_last_answer() -> None:
    request = Asked(a=fit(A, 2), b=fit(B, 1))
    assert request.best() == B
    request.change(B, fit(B, 3))
    assert request.best() == A
    request.change(A, FULL)
    assert request.best() == B
    request.change(B, FULL)
    assert request.best() is None
    request.change(A, fit(A, 2))
    assert request.best() == A


def test_a_node_to_be_avoided_is_there_again_when_it_is_not() -> None:
    request = Asked(a=fit(A, 2), b=fit(B, 1))
    assert request.best(B) == A
    assert request.best(A, B) is None
    assert request.best() == B
    assert (request.board.is_feasible(B), request.board.is_feasible(C)) == (True, False)


def test_refusals_that_are_equal_stand_together_by_name() -> None:
    other = allocator_types.NodeRejection(fits=1, requested=2)
    request = Asked(a=other, b=FULL, c=other)
    assert [*request.board.rejections(request.answer).items()] == [(other, (A, C)), (FULL, (B,))]
    request.change(A, FULL)
    assert [*request.board.rejections(request.answer).items()] == [(FULL, (A, B)), (other, (C,))]
    request.change(C, fit(C, 1))
    assert [*request.board.rejections(request.answer)] == [FULL]


def test_a_node_that_reaches_no_device_of_ours_is_neither_fit_nor_refused() -> None:
    assert Asked().board.rejections(Asked().answer) == {}


def test_a_node_that_is_gone_is_forgotten() -> None:
    request = Asked(a=fit(A, 1), b=FULL)
    request.view.nodes = {C: VIEW.nodes[C]}
    request.view.changed = [A, B]
    assert request.renew() == []
    assert request.best() is None
    assert request.board.rejections(request.answer) == {}


def test_all_nodes_are_evaluated_again_when_changes_are_unknown() -> None:
    request = Asked(a=fit(A, 1))
    request.view.changed = None
    assert request.renew() == [A, B, C]


def test_the_best_ones_are_told_in_their_order_and_stay() -> None:
    request = Asked(a=fit(A, 2), b=fit(B, 1), c=fit(C, 3))
    assert request.best_of(2) == [B, A]
    assert request.best_of(5) == [B, A, C]
    assert request.best_of(5, A) == [B, C]
    request.change(B, fit(B, 9))
    request.change(B, fit(B, 1))
    assert request.best_of(5) == [B, A, C]


def test_ranks_of_nodes_that_are_never_among_the_best_do_not_pile_up() -> None:
    request = Asked(a=fit(A, 1), b=fit(B, 2), c=fit(C, 3))
    for number in range(1000):
        request.change(C, fit(C, 3 + number % 7))
        assert request.best() == A
    assert request.board.heap_size < 100
    assert request.best_of(3) == [A, B, C]


def test_a_pending_rejection_is_explained_when_rejections_are_read() -> None:
    request = Asked(a=node_result.PENDING, b=FULL, c=node_result.PENDING)
    request.change(C, fit(C, 1))
    request.found[A] = FULL
    request.names.clear()
    assert request.board.rejections(request.answer) == {FULL: (A, B)}
    assert request.board.rejections(request.answer) == {FULL: (A, B)}
    assert request.names == [A]
    request.found[A] = fit(A, 1)
    request.change(B, node_result.PENDING)
    with pytest.raises(TypeError, match="was rejected"):
        request.board.rejections(lambda name: fit(name, 1))
