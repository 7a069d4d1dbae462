from collections.abc import Sequence

from driver import ids, reasons
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import base
from driver.scheduling.allocator.results import node_ranking, node_result
from tests.support import snapshots
from tests.support.builders import objects

A, B, C = (ids.NodeName(f"node-{one}") for one in "abc")
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

    def __init__(self, **found: node_result.NodeResult) -> None:
        self.view = Changing()
        self.found = {ids.NodeName(f"node-{one}"): answer for one, answer in found.items()}
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
        found = self.best_of(1, *avoid)
        return found[0] if found else None

    def best_of(self, most: int, *avoid: ids.NodeName) -> list[ids.NodeName]:
        return [name for name, _ in self.board.best(most, dict.fromkeys(avoid, "words"))]


def fit(name: ids.NodeName, free: int) -> node_result.Fit:
    room = base.NodeCapacity(0, 0, (), base.NodeTopology(()))
    return node_result.Fit((0, 0, (), free), (), base.Candidate(name, room, room, ()), (), 0)


def test_everybody_is_asked_once_and_then_who_changed() -> None:
    asked = Asked(a=fit(A, 2), b=fit(B, 1))
    assert asked.names == [A, B, C]
    assert asked.renew() == []
    assert asked.change(B, fit(B, 3)) == [B]


def test_the_lowest_rank_is_best_as_of_the_last_answer() -> None:
    asked = Asked(a=fit(A, 2), b=fit(B, 1))
    assert asked.best() == B
    asked.change(B, fit(B, 3))
    assert asked.best() == A
    asked.change(A, FULL)
    assert asked.best() == B
    asked.change(B, FULL)
    assert asked.best() is None
    asked.change(A, fit(A, 2))
    assert asked.best() == A


def test_a_node_to_be_avoided_is_there_again_when_it_is_not() -> None:
    asked = Asked(a=fit(A, 2), b=fit(B, 1))
    assert asked.best(B) == A
    assert asked.best(A, B) is None
    assert asked.best() == B
    assert (asked.board.is_feasible(B), asked.board.is_feasible(C)) == (True, False)


def test_refusals_that_are_equal_stand_together_by_name() -> None:
    other = allocator_types.NodeRejection(fits=1, requested=2)
    asked = Asked(a=other, b=FULL, c=other)
    assert [*asked.board.rejections().items()] == [(other, (A, C)), (FULL, (B,))]
    asked.change(A, FULL)
    assert [*asked.board.rejections().items()] == [(FULL, (A, B)), (other, (C,))]
    asked.change(C, fit(C, 1))
    assert [*asked.board.rejections()] == [FULL]


def test_a_node_that_reaches_no_device_of_ours_is_neither_fit_nor_refused() -> None:
    assert Asked().board.rejections() == {}


def test_a_node_that_is_gone_is_forgotten() -> None:
    asked = Asked(a=fit(A, 1), b=FULL)
    asked.view.nodes = {C: VIEW.nodes[C]}
    asked.view.changed = [A, B]
    assert asked.renew() == []
    assert asked.best() is None
    assert asked.board.rejections() == {}


def test_where_it_is_not_known_what_changed_everybody_is_asked_again() -> None:
    asked = Asked(a=fit(A, 1))
    asked.view.changed = None
    assert asked.renew() == [A, B, C]


def test_the_best_ones_are_told_in_their_order_and_stay() -> None:
    asked = Asked(a=fit(A, 2), b=fit(B, 1), c=fit(C, 3))
    assert asked.best_of(2) == [B, A]
    assert asked.best_of(5) == [B, A, C]
    assert asked.best_of(5, A) == [B, C]
    asked.change(B, fit(B, 9))
    asked.change(B, fit(B, 1))
    assert asked.best_of(5) == [B, A, C]


def test_ranks_of_nodes_that_are_never_among_the_best_do_not_pile_up() -> None:
    asked = Asked(a=fit(A, 1), b=fit(B, 2), c=fit(C, 3))
    for number in range(1000):
        asked.change(C, fit(C, 3 + number % 7))
        assert asked.best() == A
    assert asked.board.heap_size < 100
    assert asked.best_of(3) == [A, B, C]
