"""Library that pynvml speaks to: it loads one a process, and remembers its functions."""

import ctypes
from pathlib import Path

import pynvml


def load(library: Path | str) -> None:
    """Have pynvml speak to that library."""
    forget()
    pynvml.nvmlLib = ctypes.CDLL(str(library))


def forget() -> None:
    """Let pynvml load another library."""
    pynvml.nvmlLib = None
    pynvml._nvmlGetFunctionPointer_cache.clear()
