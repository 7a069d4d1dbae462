"""The start of a program that stays: imported before any other module by its `__main__`.

structlog imports rich, for tracebacks in a terminal, wherever it is installed: 4 MiB, and the
logs are JSON. While modules load, the cyclic collector visits all of them again and again, an
eighth of the start's processor time, and they never become garbage.
"""

import gc
import sys

_RICH = "rich"


def _import_structlog() -> None:
    """Import structlog as if rich were not installed, unless either is imported already."""
    if _RICH in sys.modules:
        return
    sys.modules[_RICH] = None  # type: ignore[assignment]  # as the import system has it
    try:
        import structlog  # noqa: F401, PLC0415 - only here is rich hidden
    finally:
        del sys.modules[_RICH]


def _is_program() -> bool:
    """Return whether one of our programs runs, and not a test that imports its module."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith("driver.")


def finish_imports() -> None:
    """Start the cyclic collector again; it never visits what is there now."""
    gc.freeze()
    gc.enable()


if _is_program():
    gc.disable()
    _import_structlog()
