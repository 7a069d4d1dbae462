"""Findings on settings: used, changed in meaning, without effect, or unknown."""

import json
from dataclasses import dataclass
from enum import StrEnum


class SettingFate(StrEnum):
    """Outcome for a setting."""

    USED = "used"
    CHANGED = "changed"
    """What it asked for is not to be had in the same way: somebody has to look at it."""
    DROPPED = "dropped"
    """It has no meaning any more, and nobody has to do anything."""
    UNKNOWN = "unknown"

    @property
    def needs_attention(self) -> bool:
        """Return whether a person has to look at it."""
        return self in {SettingFate.CHANGED, SettingFate.UNKNOWN}


@dataclass(frozen=True, slots=True)
class FateText:
    """A fate and, in a sentence, why and what there is instead."""

    fate: SettingFate
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Outcome for the setting at `path` (`sharing.mps.resources[0].replicas`)."""

    path: str
    value: object
    fate: SettingFate
    text: str

    @property
    def setting(self) -> str:
        """`flags.migStrategy=mixed`; long values are cut."""
        if isinstance(self.value, dict | list) and not self.value:
            return self.path
        shown = self.value if isinstance(self.value, str) else json.dumps(self.value, default=str)
        return f"{self.path}={shown if len(shown) <= _LONG else shown[:_LONG] + '...'}"


_LONG = 60
