"""PersistentVolumes and their claims: only which nodes a bound volume is reached from (D5)."""

from dataclasses import dataclass

from driver.resources import fields, selectors


@dataclass(frozen=True, slots=True)
class BoundClaim:
    """A PersistentVolumeClaim; `volume` is "" while it is unbound."""

    volume: str


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume; without a selector every node reaches it."""

    selector: selectors.NodeSelector | None


def parse_claim(obj: fields.Raw) -> BoundClaim:
    """Read a PersistentVolumeClaim."""
    return BoundClaim(fields.text(fields.mapping(obj, "spec"), "volumeName", "spec"))


def parse_volume(obj: fields.Raw) -> Volume:
    """Read a PersistentVolume."""
    at = "spec.nodeAffinity"
    affinity = fields.mapping(fields.mapping(obj, "spec"), "nodeAffinity", "spec")
    required = fields.mapping(affinity, "required", at)
    return Volume(selectors.parse(required, f"{at}.required") if required else None)
