"""Faults by kind, and their repair: one family a file.

A family is built from the world and says which kinds are its own: `acts`.
"""

from collections.abc import Callable, Mapping

from tests.chaos import draw

Act = Callable[[draw.Fault], None]
Acts = Mapping[draw.Kind, Act]
