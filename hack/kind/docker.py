"""Docker's command line: what is asked of the daemon, and what is done with it."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.cluster import errors, shell

_ASK_S = 60.0


@dataclass(frozen=True, slots=True)
class Image:
    """An image by one of its names."""

    name: str
    identifier: str


@dataclass(frozen=True, slots=True)
class Docker:
    """A daemon that answers; `host` is its address, empty for the client's own default."""

    host: str = ""
    program: str = "docker"

    def environment(self) -> dict[str, str]:
        """What programs that call Docker themselves are run with: kind."""
        return {**os.environ, **({"DOCKER_HOST": self.host} if self.host else {})}

    def run(self, *words: str, standard_input: str | None = None, timeout: float = _ASK_S) -> str:
        """What a command printed; CommandFailedError with its words if it failed."""
        return shell.run(
            (self.program, *words),
            env=self.environment(),
            standard_input=standard_input,
            timeout=timeout,
        )

    def inspect(self, kind: str, *names: str) -> list[Mapping[str, Any]]:
        """Describe objects of a kind (`image`, `container`), those that are there."""
        if not names:
            return []
        text = shell.run(
            (self.program, kind, "inspect", *names),
            env=self.environment(),
            timeout=_ASK_S,
            ends=(0, 1),
        )
        return list(json.loads(text or "[]"))

    def image_label(self, name: str, label: str) -> str:
        """A label of an image; empty if either is not there."""
        for image in self.inspect("image", name):
            return str(((image.get("Config") or {}).get("Labels") or {}).get(label, ""))
        return ""

    def images(self, label: str) -> list[Image]:
        """The images that have a label."""
        form = "{{.Repository}}:{{.Tag}} {{.ID}}"
        text = self.run("image", "ls", f"--filter=label={label}", f"--format={form}")
        return [Image(*line.split()) for line in text.splitlines()]

    def load(self, archive: Path) -> str:
        """Have Docker keep an image's archive; what it said."""
        return self.run("load", f"--input={archive}", timeout=600)

    def remove_image(self, name: str) -> None:
        """Forget a name of an image, and the image if it was the last."""
        self.run("image", "rm", "--force", name, timeout=300)

    def containers(self, *filters: str) -> list[str]:
        """The names of containers, of those that ended too."""
        chosen = [f"--filter={text}" for text in filters]
        return self.run("ps", "--all", *chosen, "--format={{.Names}}").split()

    def remove_containers_of(self, image: str) -> None:
        """Remove containers of an image with their volumes, whatever they do."""
        for name in self.containers(f"ancestor={image}"):
            self.run("rm", "--force", "--volumes", name)

    def inside(self, container: str, *words: str, standard_input: str | None = None) -> str:
        """What a program printed that was run in a container."""
        flags = ("--interactive",) if standard_input is not None else ()
        return self.run("exec", *flags, container, *words, standard_input=standard_input)


def answers(host: str = "", program: str = "docker") -> str:
    """Empty if a daemon answers; otherwise why not, in Docker's words or ours."""
    environment = {**os.environ, **({"DOCKER_HOST": host} if host else {})}
    words: Sequence[str] = (program, "info", "--format={{.ServerVersion}}")
    try:
        answer = subprocess.run(
            words, env=environment, capture_output=True, text=True, check=False, timeout=30
        )
    except FileNotFoundError:
        return "not installed"
    except subprocess.TimeoutExpired:
        return "it does not answer within 30 s"
    text = answer.stdout.strip()
    return "" if answer.returncode == 0 and text else _reason(answer.stderr or answer.stdout)


def _reason(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it does not answer"


def refusal(error: Exception) -> Exception:
    """What to do about a command, or a write, that failed, where it is known; else the error."""
    output = error.output if isinstance(error, errors.CommandFailedError) else str(error)
    for text, advice in _KNOWN.items():
        if text in output.lower():
            return errors.ClusterError(advice)
    return error


_KNOWN = {
    "no space left on device": (
        "the disk is full: free some space (docker system prune removes what Docker keeps and no "
        "container uses), and run it again; it goes on where it stopped"
    ),
    "port is already allocated": (
        "a port of the host that kind-config.yaml asks for is taken: end what listens there, or "
        "change hostPort or apiServerPort, and run it again"
    ),
    "address already in use": (
        "a port of the host that kind-config.yaml asks for is taken: end what listens there, or "
        "change hostPort or apiServerPort, and run it again"
    ),
    "unable to apply caps": (
        "Docker may not give a container every capability on this machine: run it with --daemon "
        "(make kind-up DAEMON=1), whose containers ask for what there is"
    ),
}
