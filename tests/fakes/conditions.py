"""Reports of the plugin on claims, recorded and written nowhere."""

from driver.kubeletplugin import ports


class Conditions:
    """Remembers every word, oldest first."""

    def __init__(self) -> None:
        self.said: list[tuple[str, ports.ConditionUpdate]] = []

    def set_condition(self, ref: ports.ClaimRef, word: ports.ConditionUpdate) -> None:
        self.said.append((ref.name, word))

    def of(self, name: str) -> list[tuple[bool | None, str, bool]]:
        """Return what was said of a claim: holds, reason, permanent."""
        return [(w.holds, w.reason.value, w.permanent) for text, w in self.said if text == name]
