"""Which policies decide about a workload: those of its DeviceClass, else the controller's. Pure."""

from collections import OrderedDict
from collections.abc import Iterable

from driver import errors, names, reasons
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import mix_estimator, ranking, workload_mix
from driver.scheduling.snapshot import snapshot

_MOST = 16
_Key = tuple[str | None, workload_mix.Mix]


class Judges:
    """Of one cluster. Whose classes differ in this, the class of the first request decides."""

    def __init__(self, default: ranking.Ranking) -> None:
        self._default = default
        self._usual = mix_estimator.Usual(default.usual)
        self._made: OrderedDict[_Key, ranking.Ranking] = OrderedDict()

    def of(
        self, view: snapshot.Snapshot, wants: Iterable[allocator_requests.Want]
    ) -> ranking.Ranking | allocator_types.NoFit:
        """The policies, with what is usually asked now; the same object as long as it is."""
        name, words = _ordered(view, wants)
        now = self._usual.of(view)
        found = self._made.get((words, now))
        if found is None:
            try:
                found = self._default.of(now) if words is None else ranking.of(words, now)
            except errors.BadInput as error:
                where = f"DeviceClass {name}: annotation {names.POLICIES_ANNOTATION}"
                detail = f"{where}: {error.problem}; expected {error.expected}"
                return allocator_types.NoFit(reasons.Reason.CONFIG_INVALID, detail)
            self._made[words, now] = found
        self._made.move_to_end((words, now))
        while len(self._made) > _MOST:
            self._made.popitem(last=False)
        return found


def _ordered(
    view: snapshot.Snapshot, wants: Iterable[allocator_requests.Want]
) -> tuple[str, str | None]:
    """The first class that orders its own policies, and what it says; None: no class does."""
    for want in wants:
        for way in want.ways:
            found = view.classes[way.request.device_class]
            if found.policies is not None:
                return found.name, found.policies
    return "", None
