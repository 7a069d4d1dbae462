"""Faults between our processes and the API server: the fault proxies' plans."""

from collections.abc import Mapping

from tests.chaos import draw, faults, world
from tests.chaos.never import NEVER
from tests.fakes.faultproxy import plan, proxy

Requests = dict[plan.Kind, plan.Odds]
_BUSY: plan.Odds = (
    (0.15, plan.Answer(429, "TooManyRequests", retry_after_s=1)),
    (0.1, plan.Answer(500, "InternalError")),
    (0.1, plan.Answer(503, "ServiceUnavailable")),
    (0.1, plan.Answer(504, "Timeout")),
)
_CONFLICTS: plan.Odds = (*_BUSY, (0.2, plan.Answer(409, "Conflict")))
_DROPS: plan.Odds = ((0.25, plan.ResetBefore()), (0.25, plan.ResetAfter()))
_LIES: plan.FrameOdds = (
    (0.1, plan.Duplicate()),
    (0.1, plan.Replay()),
    (0.05, plan.Expire()),
    (0.1, plan.Trickle(0.5)),
    (0.05, plan.Cut()),
)


class Network:
    """Network of the proxies."""

    def __init__(self, source: world.World) -> None:
        self._world = source

    def acts(self) -> faults.Acts:
        """Return the acts by kind."""
        kinds = draw.Kind
        return {
            kinds.API_REFUSES: lambda fault: self._for_all(fault, _everything(_CONFLICTS)),
            kinds.API_DROPS: lambda fault: self._for_all(fault, _everything(_DROPS)),
            kinds.API_HALF_OPEN: self._half_open,
            kinds.WATCHES_LIE: self._lie,
            kinds.LEADER_PARTITIONED: lambda fault: self._partition(fault, self._world.holder()),
            kinds.PLUGIN_PARTITIONED: lambda fault: self._partition(
                fault, self._world.nodes[fault.node].name
            ),
        }

    def _for_all(self, fault: draw.Fault, odds: Requests) -> None:
        chooser = plan.Seeded(fault.seed, odds)
        self._follow(fault, dict.fromkeys(self._world.proxies.values(), chooser))

    def _half_open(self, fault: draw.Fault) -> None:
        odds: plan.Odds = ((0.1, plan.HalfOpen(fault.seconds)), (0.1, plan.Slow(1.0)))
        self._for_all(fault, _everything(odds))

    def _lie(self, fault: draw.Fault) -> None:
        """Only controllers, which list anew, lose any: nothing else could tell them."""
        lossy = plan.Seeded(fault.seed, frames=(*_LIES, (0.05, plan.Lose())))
        plugins = plan.Seeded(fault.seed, frames=_LIES)
        proxies = self._world.proxies.items()
        self._follow(
            fault,
            {
                fault_proxy: lossy if name in world.CONTROLLERS else plugins
                for name, fault_proxy in proxies
            },
        )

    def _partition(self, fault: draw.Fault, name: str) -> None:
        self._world.proxies[name].dig(fault.seconds)
        self._world.time.wait(NEVER, fault.seconds)

    def _follow(self, fault: draw.Fault, between: Mapping[proxy.FaultProxy, plan.Chooser]) -> None:
        for key, chooser in between.items():
            key.choose(chooser)
        try:
            self._world.time.wait(NEVER, fault.seconds)
        finally:
            for key in between:
                key.choose(world.CALM)


def _everything(odds: plan.Odds) -> Requests:
    return dict.fromkeys(plan.Kind, odds)
