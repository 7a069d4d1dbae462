"""The environment of a process as in the published image: what it weighs there, it weighs here.

Python compiles a module anew at every start where it may not keep what it compiled. That takes a
second of a plugin's start, and the memory is not given back.
"""

import os
from collections.abc import Mapping

from hack.cluster import control


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This one's, with bytecode kept in a folder of the cache and the image's settings."""
    retained = {
        name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    return {**retained, **control.python(), **(more or {})}
