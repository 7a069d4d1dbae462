"""Tolerations, of pods towards nodes and of requests towards devices: one rule for both."""

from dataclasses import dataclass

from driver.resources import fields


@dataclass(frozen=True, slots=True)
class Toleration:
    """`operator` is Equal or Exists; an empty key with Exists tolerates every key.

    `raw` is what was read, so that it can be copied into a result unchanged.
    """

    key: str
    operator: str
    value: str
    effect: str
    raw: fields.Raw

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        """Return whether a taint is tolerated; an empty effect tolerates every effect."""
        if self.effect and self.effect != effect:
            return False
        if self.key and self.key != key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator == "Equal" and bool(self.key) and self.value == value


def parse(obj: fields.Raw, key: str, location: str) -> tuple[Toleration, ...]:
    """The list of tolerations under `key`."""
    return tuple(
        Toleration(
            key=fields.text(item, "key", path),
            operator=fields.text(item, "operator", path) or "Equal",
            value=fields.text(item, "value", path),
            effect=fields.text(item, "effect", path),
            raw=item,
        )
        for path, item in fields.objects(obj, key, location)
    )
