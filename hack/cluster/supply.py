"""How each set of programs is had: as official files, built with Go, or not at all. Pure.

A set is judged by its own needs alone: what one lacks keeps no other from being had.
"""

import dataclasses
from collections.abc import Mapping
from enum import StrEnum

from hack.cluster import versions


class Way(StrEnum):
    """Where programs come from: AUTO takes official files where their site answers."""

    AUTO = "auto"
    RELEASE = "release"
    BUILD = "build"


@dataclasses.dataclass(frozen=True, slots=True)
class Go:
    """Go of this machine; `version` None where there is none that can be told.

    `toolchain` is GOTOOLCHAIN as `go env` has it: `local` uses no other than this one.
    """

    version: versions.GoVersion | None
    toolchain: str = "local"

    def may_fetch(self, changes: Mapping[str, str]) -> bool:
        """Whether it fetches a newer one, with these changes to its environment."""
        chosen = changes.get("GOTOOLCHAIN", self.toolchain)
        return chosen == "auto" or chosen.endswith("+auto")


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """A set, the way it comes (RELEASE or BUILD), and in one line why it cannot; "" if it can."""

    tools: versions.ToolSet
    way: Way
    refusal: str = ""


def choose(
    tools: versions.ToolSet,
    go_mod: str,
    way: Way,
    go: Go,
    *,
    answers: bool,
    environ: Mapping[str, str],
) -> Choice:
    """Decide for one set. `answers`: its release site does; `go_mod` is its module's text."""
    if way is not Way.BUILD and answers:
        return Choice(tools, Way.RELEASE)
    name = f"{tools.name} {tools.version}"
    if way is Way.RELEASE:
        told = (
            "publishes no programs" if tools.release is None else "its release site does not answer"
        )
        return Choice(tools, way, f"{name}: {told}; build it with RATION_PROGRAMS=build")
    wanted = versions.required_go([go_mod])
    if go.version is None:
        return Choice(tools, Way.BUILD, f"{name}: Go {wanted} or newer builds it (go.dev/dl)")
    if go.version.number < wanted.number and not go.may_fetch(tools.environment(environ)):
        return Choice(
            tools,
            Way.BUILD,
            f"{name}: Go {wanted} or newer builds it; this is {go.version}, and GOTOOLCHAIN="
            f"{go.toolchain} keeps it from fetching another: install that one (go.dev/dl), or set "
            "GOTOOLCHAIN=auto",
        )
    return Choice(tools, Way.BUILD)
