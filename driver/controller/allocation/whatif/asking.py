"""What is asked again and again of views that differ in who is there. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from driver.controller import view as cluster
from driver.controller.allocation import answers, asked, outcome, rooms, settings
from driver.resources import nodes

LOOK = 1
"""Steps of looking at one device, or of weighing one set of pods."""
NODE = 10
"""Steps of looking who is on a node."""
ASK = 100
"""Steps of asking a node for all its devices."""


@dataclass(slots=True)
class Meter:
    """Counts steps; past `most` a search ends, and says so."""

    most: int
    steps: int = 0

    def count(self, steps: int) -> None:
        """So many more were made."""
        self.steps += steps

    @property
    def spent(self) -> bool:
        """Whether no step is left."""
        return self.steps >= self.most


@dataclass(frozen=True, slots=True)
class Asking:
    """A workload, read once."""

    workload: outcome.Workload
    wants: Sequence[asked.Want]
    deciding: settings.Settings
    verdicts: settings.Verdicts

    def answer(self, view: cluster.ClusterView, node: nodes.Node) -> answers.Answer:
        """What a node of a view says."""
        return answers.ask(self._question(view), node)

    def picks(
        self, view: cluster.ClusterView, node: nodes.Node, fit: answers.Fit
    ) -> tuple[outcome.Pick, ...]:
        """What a node that does gives."""
        return answers.picks(self._question(view), node, fit)

    def _question(self, view: cluster.ClusterView) -> answers.Question:
        found = rooms.Rooms()
        found.renew(view)
        return answers.Question(
            view, found, self.workload, self.wants, self.deciding, self.verdicts
        )


def of(
    view: cluster.ClusterView, workload: outcome.Workload, deciding: settings.Settings
) -> Asking | None:
    """A workload's; None where it can be placed nowhere as it is asked."""
    wants = asked.wants(view, workload.open)
    if isinstance(wants, outcome.NoFit):
        return None
    return Asking(workload, wants, deciding, deciding.rules.of(view, workload))
