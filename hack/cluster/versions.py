"""The pinned tool sets: versions.toml read, go.mod written, cache keys derived.

Pure: values in, values out; the committed files of this folder are read.
"""

import dataclasses
import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Self

import pydantic

from hack.cluster import errors

ROOM = Path(__file__).resolve().parent
FILE = ROOM / "versions.toml"
GO_LANGUAGE = "1.26.0"
_STAGING = re.compile(r"^\s*(k8s\.io/[a-z0-9-]+) => \./staging/", re.MULTILINE)
_GO_VERSION = re.compile(r"go(\d+)\.(\d+)(?:\.(\d+))?")


class ToolSet(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Programs that are built from one Go module at one version.

    `binaries` maps a program to its package below `module`; `staging` is the version of the
    `k8s.io` repositories that live inside Kubernetes' own tree; `stamp` is the variable of a
    package that the linker writes the version into; an `optional` set is no part of a cluster; a
    set without `release` is always built. `go` is the Go that the module asks for, where that is
    newer than the cluster's own: it is fetched as a module for this set alone, unless
    GOTOOLCHAIN in the environment says otherwise.
    """

    name: str
    module: str
    version: Annotated[str, pydantic.Field(pattern=r"^v\d+\.\d+\.\d+$")]
    binaries: Mapping[str, str]
    built_as: Mapping[str, str] = pydantic.Field(default_factory=dict)
    staging: str | None = None
    stamp: str | None = None
    commit_date: str | None = None
    release: str | None = None
    checksum: str = ""
    build_seconds: float
    optional: bool = False
    go: Annotated[str | None, pydantic.Field(pattern=r"^\d+\.\d+\.\d+$")] = None

    @property
    def folder(self) -> Path:
        """The committed module: go.mod and go.sum."""
        return ROOM / "tools" / self.name

    def packages(self) -> tuple[str, ...]:
        """The Go packages to build, sorted."""
        return tuple(sorted(f"{self.module}/{p}".rstrip("/") for p in self.binaries.values()))

    def environment(self, environ: Mapping[str, str]) -> Mapping[str, str]:
        """Changes to the environment of the `go` command; who sets GOTOOLCHAIN there is obeyed."""
        return {"GOTOOLCHAIN": "auto"} if self.go and "GOTOOLCHAIN" not in environ else {}

    def flags(self) -> tuple[str, ...]:
        """The arguments of `go build` that shape the programs."""
        linker = ["-s", "-w", *self._stamps()]
        return ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", " ".join(linker))

    def _stamps(self) -> list[str]:
        """Kubernetes takes its version from the linker; without it, it calls itself v0.0.0."""
        if self.staging is None:
            return [f"-X {self.stamp}={self.version}"] if self.stamp else []
        major, minor, _ = self.version.removeprefix("v").split(".")
        values = {
            "gitVersion": self.version,
            "gitMajor": major,
            "gitMinor": minor,
            "gitTreeState": "clean",
            "buildDate": self.commit_date or "1970-01-01T00:00:00Z",
        }
        homes = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        return [f"-X {home}.{key}={value}" for home in homes for key, value in values.items()]

    def address(self, template: str, arch: str, binary: str = "") -> str:
        """A download address of this version; `arch` in Go's spelling (amd64, arm64)."""
        return template.format(
            version=self.version, number=self.version[1:], arch=arch, binary=binary
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Catalogue:
    """Every pinned tool set: one a release line of Kubernetes, and those that all lines share.

    `kubernetes` maps a line ("1.37") to its set; `default` is the line where none is asked for;
    `optional` are the sets that no cluster needs, built when a test asks for their programs.
    """

    default: str
    kubernetes: Mapping[str, ToolSet]
    shared: tuple[ToolSet, ...]
    optional: tuple[ToolSet, ...] = ()

    def line(self, asked: str | None) -> str:
        """The line asked for, or the default; an unknown one is a ClusterError."""
        chosen = asked or self.default
        if chosen not in self.kubernetes:
            known = " or ".join(self.kubernetes)
            raise errors.ClusterError(
                f"Kubernetes {chosen!r} (K8S, --kubernetes): expected {known}"
            )
        return chosen

    def of(self, line: str) -> tuple[ToolSet, ...]:
        """The sets that a cluster of a line is made of."""
        return (self.kubernetes[line], *self.shared)

    def sets(self) -> dict[str, ToolSet]:
        """Every set by its name."""
        every = (*self.kubernetes.values(), *self.shared, *self.optional)
        return {tools.name: tools for tools in every}


@dataclasses.dataclass(frozen=True, slots=True)
class GoVersion:
    """A Go release, ordered."""

    number: tuple[int, int, int]

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `go version go1.26.8 linux/amd64` or a go.mod's `go 1.26.6`."""
        found = _GO_VERSION.search(text.replace("go ", "go"))
        if found is None:
            return None
        major, minor, patch = found.groups()
        return cls((int(major), int(minor), int(patch or 0)))

    def __str__(self) -> str:
        """As Go writes it."""
        return ".".join(str(part) for part in self.number)


def parse(text: str) -> Catalogue:
    """Read versions.toml; a wrong field is a pydantic.ValidationError that names it."""
    tables = tomllib.loads(text)
    family = tables.pop("kubernetes")
    default, lines = family.pop("default"), family.pop("lines")
    others = [_set(name, table) for name, table in tables.items()]
    return Catalogue(
        default=default,
        kubernetes={
            line: _set(f"kubernetes-{line}", {**family, **own}) for line, own in lines.items()
        },
        shared=tuple(one for one in others if not one.optional),
        optional=tuple(one for one in others if one.optional),
    )


def _set(name: str, table: Mapping[str, object]) -> ToolSet:
    return ToolSet.model_validate({"name": name, **table})


def load() -> Catalogue:
    """The pinned tool sets of this checkout."""
    return parse(FILE.read_text())


def staging_modules(upstream_go_mod: str) -> tuple[str, ...]:
    """The modules that Kubernetes' own go.mod replaces by its staging folders."""
    return tuple(_STAGING.findall(upstream_go_mod))


def render_go_mod(tools: ToolSet, upstream_go_mod: str) -> str:
    """The go.mod of a tool set before `go mod tidy` adds what is needed indirectly.

    A `replace` counts in the main module only, so Kubernetes' replacements of its staging
    folders are written out again, by their released versions.
    """
    lines = [f"module ration.local/tools/{tools.name}", "", f"go {tools.go or GO_LANGUAGE}", ""]
    if tools.staging is not None:
        lines += ["godebug default=go1.26", ""]
    lines += ["tool (", *(f"\t{package}" for package in tools.packages()), ")", ""]
    lines += [f"require {tools.module} {tools.version}"]
    if tools.staging is not None:
        modules = staging_modules(upstream_go_mod)
        rows = [f"\t{module} => {module} {tools.staging}" for module in modules]
        lines += ["", "replace (", *rows, ")"]
    return "\n".join(lines) + "\n"


def is_pinned(tools: ToolSet, go_mod: str) -> bool:
    """Whether a committed go.mod requires what versions.toml says."""
    wanted = rf"{re.escape(tools.module)} {re.escape(tools.version)}(?: // indirect)?$"
    return re.search(wanted, go_mod, re.MULTILINE) is not None


def required_go(go_mods: Sequence[str]) -> GoVersion:
    """The newest `go` line of these modules."""
    lines = [line for text in go_mods for line in text.splitlines() if line.startswith("go ")]
    found = [version for line in lines if (version := GoVersion.parse(line)) is not None]
    return max(found, key=lambda version: version.number)


def oldest_go(catalogue: Catalogue) -> GoVersion:
    """The oldest Go that builds every set of a cluster, of whichever line."""
    sets = [tools for line in catalogue.kubernetes for tools in catalogue.of(line)]
    return required_go([(tools.folder / "go.mod").read_text() for tools in sets])


def cache_key(parts: Sequence[bytes]) -> str:
    """A name for what these inputs build: 16 hex digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]
