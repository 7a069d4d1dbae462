"""Subject under test: a subject file (TOML), read strictly, with its placeholders filled in.

`docs/how-to/blackbox.md` says what each key means; `subjects/minimal.toml` is a short one.
"""

import string
import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import pydantic

FOLDER = Path(__file__).parent / "subjects"
Words = Annotated[tuple[str, ...], pydantic.Field(min_length=1)]
Exactly = Mapping[str, Any]
"""`exactly` of a device request, without its count."""


class Feature(StrEnum):
    """Optional feature of a driver; a case that needs a missing one is skipped."""

    CONFIG = "config"
    CONFIG_MIXED = "config-mixed"
    COUNTERS = "counters"
    CAPACITY = "capacity"
    ADMIN = "admin"
    HEALTH = "health"
    STATUS = "status"
    ROLLING = "rolling"
    REFUSES_OVERLAP = "refuses-overlap"
    RECLAIMS = "reclaims"
    REBUILDS_CDI = "rebuilds-cdi"
    CHECKPOINT = "checkpoint"
    ONE_INSTANCE = "one-instance"
    CONFINED = "confined"


TABLES = {
    Feature.CONFIG: "config",
    Feature.COUNTERS: "counters",
    Feature.CAPACITY: "capacity",
    Feature.HEALTH: "health",
    Feature.CHECKPOINT: "checkpoint",
}
"""Features of which the file has to say more, and the table that does."""


class BadSubjectError(Exception):
    """A subject file that cannot be used."""

    def __init__(self, location: str, problem: str, expected: str) -> None:
        super().__init__(f"{location}: {problem}; expected {expected}")


class _Table(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class Setup(_Table):
    """Once a cluster: what is applied, and the service account that the plugin runs as.

    `manifests` are files beside the subject's; `objects` is a command that prints more of them.
    """

    account: Annotated[str, pydantic.Field(pattern=r"^[a-z0-9-]+/[a-z0-9.-]+$")]
    manifests: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()


class Node(_Table):
    """Once a node: commands that prepare it, programs beside the plugin, what a boot does."""

    setup: tuple[Words, ...] = ()
    companions: Mapping[str, Words] = pydantic.Field(default_factory=dict)
    reboot: tuple[Words, ...] = ()


class Plugin(_Table):
    """Command of the plugin; `instance` is added where two run at once, `broken` to one that
    cannot start.
    """

    command: Words
    environment: Mapping[str, str] = pydantic.Field(default_factory=dict)
    instance: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


class Device(_Table):
    """Request of any pod: one device of `class`, of which a node has `count`.

    `look` is a shell command that prints, in a container, a line for each device it has.
    """

    request: Exactly
    count: Annotated[int, pydantic.Field(ge=4, le=16)]
    look: str
    pool: str = "{node}"


class Config(_Table):
    """Opaque parameters, and the line of `env` that a container has by them."""

    parameters: Mapping[str, Any]
    shows: str


class Configs(_Table):
    """Two that differ in what they show, and parameters that the driver refuses."""

    one: Config
    other: Config
    refused: Mapping[str, Any] | None = None


class Counters(_Table):
    """`part` cannot be given while all devices of the plain request are, as they use it up."""

    part: Exactly


class Capacity(_Table):
    """`share` is a part of a device; of `most` only one fits on each device."""

    share: Exactly
    most: Exactly


class Health(_Table):
    """Commands that make a device fail and recover; {attribute} is that attribute of it."""

    attribute: str
    fail: Words
    heal: Words
    within_s: Annotated[float, pydantic.Field(gt=0)] = 60


class Checkpoint(_Table):
    """Location of the plugin's records: a pattern below {state}."""

    files: str


class Subject(_Table):
    """A driver, and how it is tried."""

    name: Annotated[str, pydantic.Field(pattern=r"^[a-z0-9-]+$")]
    driver: Annotated[str, pydantic.Field(pattern=r"^[a-z0-9.-]+$", max_length=63)]
    offers: frozenset[Feature]
    cluster: Setup
    node: Node = Node()
    plugin: Plugin
    device: Device
    config: Configs | None = None
    counters: Counters | None = None
    capacity: Capacity | None = None
    health: Health | None = None
    checkpoint: Checkpoint | None = None

    def commands(self) -> Mapping[str, Sequence[str]]:
        """Every command of the file, by where it stands."""
        result: dict[str, Sequence[str]] = {
            "cluster.objects": self.cluster.objects,
            "plugin.command": self.plugin.command,
            "plugin.instance": self.plugin.instance,
            "plugin.broken": self.plugin.broken,
        }
        for number, names in enumerate(self.node.setup):
            result[f"node.setup[{number}]"] = names
        for number, names in enumerate(self.node.reboot):
            result[f"node.reboot[{number}]"] = names
        for name, names in self.node.companions.items():
            result[f"node.companions.{name}"] = names
        if self.health is not None:
            result["health.fail"], result["health.heal"] = self.health.fail, self.health.heal
        return result


PLACES: Mapping[str, str] = {
    "python": "the Python that runs the suite",
    "node": "the node's name",
    "kubeconfig": "a kubeconfig with a token of cluster.account, bound to the node",
    "kubelet": "the plugin's root of plugins_registry/ and plugins/, where the proxy finds it",
    "cdi": "the folder of CDI specs that the node's runtime reads",
    "state": "an empty folder of the plugin's own, on disk: a reboot leaves it",
    "work": "an empty folder for all else of this subject on this node",
    "port": "a free port of 127.0.0.1",
    "instance": "a short word for one of several instances",
    "attribute": "of health.fail and health.heal: the attribute that health.attribute names",
    "device": "of health.fail and health.heal: the device's name",
}
"""What may stand in braces in a command."""


def find(word: str) -> Path:
    """The file that is meant: a path, or the name of one of `subjects/`."""
    named = FOLDER / f"{word}.toml"
    return named if named.exists() and not Path(word).exists() else Path(word).resolve()


def read(path: Path) -> Subject:
    """Read a subject file. Raises BadSubjectError."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as e:
        raise BadSubjectError(str(path), f"cannot be read ({e})", "a subject file") from e
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise BadSubjectError(str(path), str(e), "TOML") from e
    try:
        subject = Subject.model_validate(document)
    except pydantic.ValidationError as e:
        _refuse(path, e)
    _check(path, subject)
    return subject


def _refuse(path: Path, problem: pydantic.ValidationError) -> NoReturn:
    first = problem.errors()[0]
    joined = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        raise BadSubjectError(f"{path}: {joined}", "is missing", "a value")
    if first["type"] == "extra_forbidden":
        raise BadSubjectError(f"{path}: {joined}", "is unknown", "one of the keys of the page")
    text = repr(first["input"])
    raise BadSubjectError(f"{path}: {joined}", f"{text} will not do", first["msg"])


def _check(path: Path, subject: Subject) -> None:
    for key, words in subject.commands().items():
        for name in (name for word in words for name in _names(path, key, word)):
            if name not in PLACES:
                raise BadSubjectError(
                    f"{path}: {key}", f"{{{name}}} is unknown", f"one of {', '.join(PLACES)}"
                )
    for feature, table in TABLES.items():
        if feature in subject.offers and getattr(subject, table) is None:
            raise BadSubjectError(
                f"{path}: offers", f"{feature} needs more", f"the table [{table}]"
            )
    if Feature.ROLLING in subject.offers and not subject.plugin.instance:
        raise BadSubjectError(
            f"{path}: offers", "rolling needs more", "flags of an instance in plugin.instance"
        )


def _names(path: Path, location: str, word: str) -> list[str]:
    try:
        return [name for _, name, _, _ in string.Formatter().parse(word) if name is not None]
    except ValueError as e:
        raise BadSubjectError(f"{path}: {location}", f"{word!r}: {e}", "braces in pairs") from e


def filled(words: Sequence[str], places: Mapping[str, object]) -> tuple[str, ...]:
    """A command with its placeholders filled in."""
    return tuple(word.format_map(places) for word in words)
