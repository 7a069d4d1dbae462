"""A minute of the soak: what `make soak` does for hours."""

import os

import pytest

from tests.soak import __main__ as soak
from tests.soak import servers

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="MIG and device nodes are root's")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_nothing_is_lost_or_left_over_while_things_break() -> None:
    messages: list[str] = []
    assert soak.soak(soak.QUICK, servers.stand_in, keep=False, say=messages.append) == 0, "\n".join(
        messages
    )
    assert "plugin killed" in messages[-1]
    assert "lost 0" in messages[-1]
