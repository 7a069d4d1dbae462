"""`python -m tests.blackbox.flawed --flaw leaks ...`: the minimal driver, not as it should be."""

import sys
from collections.abc import Sequence
from enum import StrEnum

from tests.blackbox.minimal import __main__ as minimal
from tests.blackbox.minimal import api, state


class Flaw(StrEnum):
    """`leaks`: specs stay after Unprepare; `forgets`: nothing is known of what was given before;
    `any-uid`: a claim is prepared by its name alone; `publishes-once`: slices that went stay away.
    """

    LEAKS = "leaks"
    FORGETS = "forgets"
    ANY_UID = "any-uid"
    PUBLISHES_ONCE = "publishes-once"


class FlawedState(state.State):
    """Leaks, forgets."""

    flaws: frozenset[Flaw] = frozenset()

    def repair(self) -> None:
        if Flaw.FORGETS not in self.flaws:
            super().repair()
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            path.unlink()

    def prepare(self, uid: str, devices: state.Devices) -> None:
        if Flaw.FORGETS in self.flaws:
            self.repair()
        super().prepare(uid, devices)

    def unprepare(self, uid: str) -> None:
        if Flaw.LEAKS not in self.flaws:
            super().unprepare(uid)


class FlawedServer(api.Server):
    """Takes any UID, publishes once."""

    flaws: frozenset[Flaw] = frozenset()
    published = False

    def devices_of(self, namespace: str, name: str, uid: str) -> list[api.Given]:
        if Flaw.ANY_UID in self.flaws:
            uid = str(self.claim(namespace, name)["metadata"]["uid"])
        return super().devices_of(namespace, name, uid)

    def publish(self, names: Sequence[str]) -> None:
        if Flaw.PUBLISHES_ONCE not in self.flaws or not self.published:
            super().publish(names)
        self.published = True


def main() -> int:
    """Run the minimal driver with its flaw."""
    parser = minimal.parser()
    parser.add_argument("--flaw", type=Flaw, choices=list(Flaw), action="append", default=[])
    options = parser.parse_args()
    server = FlawedServer(options.kubeconfig, options.driver_name, options.node_name)
    flawed_state = FlawedState(options.state_dir, options.cdi_root, options.driver_name)
    server.flaws = flawed_state.flaws = frozenset(options.flaw)
    return minimal.run(options, server, flawed_state)


if __name__ == "__main__":
    sys.exit(main())
