"""Return codes of the simulated NVML."""

from collections.abc import Callable

import pytest

from simulator import codes


def code_of(call: Callable[..., object], *arguments: object) -> codes.Return:
    """Return the code that a call fails with."""
    with pytest.raises(codes.NvmlError) as refused:
        call(*arguments)
    return refused.value.code
