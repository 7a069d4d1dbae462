"""Which devices of a node of eight GPUs are asked for at once. Pure."""

import re
from collections.abc import Iterable, Sequence

LIVE, BURST = 256, 110
TIME_SLICES, MPS_SHARES = LIVE // 8, 16
"""Of a GPU, as the node publishes them for this."""
OFFERINGS = f"""\
apiVersion: resource.ration.dev/v1alpha1
kind: NodeOfferings
rules:
- timeSlices: {TIME_SLICES}
  mpsShares: {MPS_SHARES}
"""
_MIB = 79 * 1024
"""Of a GPU's memory, all that its shares have together."""
_WHOLE = re.compile(r"gpu(-\w+){4}")
_SMALLEST = re.compile(r"(gpu(?:-\w+){4})-mig-1g10gb-\d")
_DIVIDED, _SERVED, _TURNS = slice(0, 2), slice(2, 5), slice(5, 8)


def shares(devices: Iterable[str]) -> list[str]:
    """A time-slice for every live claim, the GPUs in turn."""
    gpus = _whole(devices)
    return [f"{gpus[number % len(gpus)]}-ts" for number in range(LIVE)]


def burst(devices: Sequence[str]) -> list[str]:
    """A device for each pod of a full node: two GPUs of MIG, three of MPS, three of time-slices."""
    gpus = _whole(devices)
    divided = gpus[_DIVIDED]
    found = [name for name in devices if (at := _SMALLEST.fullmatch(name)) and at[1] in divided]
    found += [f"{gpu}-mps" for gpu in gpus[_SERVED] for _ in range(MPS_SHARES)]
    left = BURST - len(found)
    turns = gpus[_TURNS]
    return found + [f"{turns[number % len(turns)]}-ts" for number in range(left)]


def amounts(device: str) -> dict[str, str]:
    """What a claim of a share has of its GPU; {} where it is no share."""
    of = {"ts": TIME_SLICES, "mps": MPS_SHARES}.get(device.rpartition("-")[2])
    return {} if of is None else {"memory": f"{_MIB // of}Mi", "compute": f"{100 // of}"}


def _whole(devices: Iterable[str]) -> list[str]:
    return sorted(name for name in devices if _WHOLE.fullmatch(name))
