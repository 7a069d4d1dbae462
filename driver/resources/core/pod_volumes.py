"""The volumes of a pod that filters look at: its claims, and disks that it names itself."""

from dataclasses import dataclass

from driver.resources import fields

_KINDS = {
    "gcePersistentDisk": "pdName",
    "awsElasticBlockStore": "volumeID",
    "iscsi": "iqn",
    "rbd": "image",
}
_EXCLUSIVE = "awsElasticBlockStore"


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk of an in-tree kind. `monitors` and `pool` are those of a Ceph RBD image."""

    kind: str
    name: str
    read_only: bool = False
    monitors: frozenset[str] = frozenset()
    pool: str = ""

    def collides(self, other: "Disk") -> bool:
        """Tell whether a node cannot mount both: it is one disk, and one of them writes."""
        if (self.kind, self.name, self.pool) != (other.kind, other.name, other.pool):
            return False
        if self.kind == "rbd" and not self.monitors & other.monitors:
            return False
        return self.kind == _EXCLUSIVE or not (self.read_only and other.read_only)


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """Names of PersistentVolumeClaims; `ephemeral` are those made for the pod (KEP-1698)."""

    claims: tuple[str, ...] = ()
    ephemeral: frozenset[str] = frozenset()
    disks: tuple[Disk, ...] = ()


NONE = PodVolumes()


def parse(spec: fields.Raw, pod: str) -> PodVolumes:
    """Read `spec.volumes` of a pod of that name."""
    if not spec.get("volumes"):
        return NONE
    claims: list[str] = []
    ephemeral: set[str] = set()
    disks: list[Disk] = []
    for path, volume in fields.objects(spec, "volumes", "spec"):
        named = fields.mapping(volume, "persistentVolumeClaim", path)
        if named:
            claims.append(fields.text(named, "claimName", path))
        elif volume.get("ephemeral") is not None:
            name = f"{pod}-{fields.text(volume, 'name', path)}"
            claims.append(name)
            ephemeral.add(name)
        disks += (
            _disk(kind, fields.mapping(volume, kind, path), f"{path}.{kind}")
            for kind in _KINDS
            if volume.get(kind) is not None
        )
    return PodVolumes(tuple(claims), frozenset(ephemeral), tuple(disks))


def _disk(kind: str, source: fields.Raw, prefix: str) -> Disk:
    return Disk(
        kind,
        fields.text(source, _KINDS[kind], prefix),
        fields.flag(source, "readOnly", prefix),
        frozenset(fields.texts(source, "monitors", prefix)),
        fields.text(source, "pool", prefix),
    )
