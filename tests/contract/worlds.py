"""Simulated machines for pynvml to speak to."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest

from simulator import builder, layout, layouts, node, store
from tests.fakes import loading


@contextlib.contextmanager
def loaded(library: Path | str) -> Iterator[None]:
    """Let pynvml speak to that library."""
    loading.load(library)
    try:
        yield
    finally:
        loading.forget()


@contextlib.contextmanager
def running(base: Path, machine: str, location: str = "") -> Iterator[Path]:
    """A new machine of that name, running; its library. Its driver is in a `place` of layouts."""
    if location:
        layouts.lay(base, location)
    builder.build(base, store.create(base, machine, "contract"))
    process = node.Node(base)
    process.start()
    try:
        yield layout.Layout(base).libraries / "libnvidia-ml.so.1"
    finally:
        process.stop()


@contextlib.contextmanager
def initialised(library: Path) -> Iterator[None]:
    """Pynvml on that library, between init and shutdown."""
    with loaded(library):
        pynvml.nvmlInit()
        try:
            yield
        finally:
            pynvml.nvmlShutdown()


def code_of(call: Callable[..., object], *arguments: object) -> int:
    with pytest.raises(pynvml.NVMLError) as refused:
        call(*arguments)
    return int(refused.value.value)
