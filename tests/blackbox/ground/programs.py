"""Programs of a subject on a node: the local cluster's components, so that its end is theirs."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.cluster import argv, certificates, control, errors, kubectl, layout, store
from tests.blackbox import subject


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one subject on one node."""

    where: layout.Layout
    node: str
    name: str

    @property
    def root(self) -> Path:
        """Short, as sockets lie in it."""
        return self.where.node(self.node).root / "b" / self.name

    @property
    def plugins(self) -> Path:
        """Instead of the kubelet's own: plugins_registry/ and plugins/ as the plugin sees them."""
        return self.root / "k"

    @property
    def cdi(self) -> Path:
        """Return what the node's containerd reads."""
        return self.where.node(self.node).cdi

    @property
    def state(self) -> Path:
        """The plugin's records."""
        return self.root / "state"

    @property
    def work(self) -> Path:
        """Return a folder with a one-letter name: a subject's own sockets may lie deep in it."""
        return self.where.node(self.node).root / self.name[0]

    @property
    def kubeconfig(self) -> Path:
        """The plugin's way in."""
        return self.where.node(self.node).config / f"{self.name}.kubeconfig"

    def words(self, **more: str) -> Mapping[str, str]:
        """Return what stands for the placeholders of a subject's commands."""
        return {
            "python": sys.executable,
            "node": self.node,
            "kubeconfig": str(self.kubeconfig),
            "kubelet": str(self.plugins),
            "cdi": str(self.cdi),
            "state": str(self.state),
            "work": str(self.work),
            "port": str(_free_port()),
            "instance": "",
            **more,
        }

    def make(self) -> None:
        """Make the folders."""
        for path in (self.plugins, self.state, self.work):
            path.mkdir(parents=True, exist_ok=True)


class Programs:
    """The plugin's instances and what runs beside them."""

    def __init__(self, places: Places, source: subject.Subject) -> None:
        self.places = places
        self.subject = source

    def furnish(self) -> None:
        """Prepare the node: folders, token, what the subject's file says; once is enough."""
        self.places.make()
        self._write_access()
        done = self.places.root / "furnished"
        if not done.exists():
            self.run_all(self.subject.node.setup)
            done.touch()
        self.start_companions()

    def start_companions(self) -> None:
        """Start what is to run beside the plugin and does not."""
        for name, command in self.subject.node.companions.items():
            if not self._runs(self._key(name)):
                self._launch(self._key(name), command)

    def run_all(self, commands: Sequence[Sequence[str]], **more: str) -> None:
        """Run commands to their end, one after the other. Raises CommandFailedError."""
        for command in commands:
            self._run(command, **more)

    def _run(self, command: Sequence[str], **more: str) -> None:
        words = subject.filled(command, self.places.words(**more))
        done = subprocess.run(
            words, check=False, capture_output=True, text=True, cwd=self.places.where.checkout
        )
        if done.returncode:
            raise errors.CommandFailedError(words, done.returncode, done.stderr or done.stdout)

    def start(self, instance: str = "") -> None:
        """Start the plugin; with an instance, as one of several."""
        if not self.runs(instance):
            self._launch(self._key("plugin", instance), self._plugin(instance), instance)

    def _plugin(self, instance: str) -> tuple[str, ...]:
        more = self.subject.plugin.instance if instance else ()
        return (*self.subject.plugin.command, *more)

    def stop(self, instance: str = "") -> None:
        """SIGTERM, and wait for the end."""
        self._act(control.stop, instance)

    def kill(self, instance: str = "") -> None:
        """SIGKILL, and wait for the end."""
        self._act(control.kill, instance)

    def _act(self, act: Any, instance: str) -> None:
        act(self.places.where, self._key("plugin", instance), self.places.node)

    def runs(self, instance: str = "") -> bool:
        """Return whether the plugin's process lives."""
        return self._runs(self._key("plugin", instance))

    def log(self, instance: str = "") -> str:
        """The end of the plugin's log."""
        key = self._key("plugin", instance)
        return control.tail(control.log_path(self.places.where, key, self.places.node), 30)

    def end(self) -> None:
        """End all that runs of the subject on this node."""
        names = [*self.subject.node.companions, "plugin"]
        for name in reversed(names):
            if self._runs(self._key(name)):
                control.stop(self.places.where, self._key(name), self.places.node)

    def lose_power(self) -> None:
        """Kill all that runs of the subject on this node."""
        for name in (*self.subject.node.companions, "plugin"):
            if self._runs(self._key(name)):
                control.kill(self.places.where, self._key(name), self.places.node)

    def try_once(self, within_s: float, *flags: str, **places: str) -> tuple[int | None, str]:
        """Start the plugin and see it end: exit code, None if it had to be killed; what it said."""
        command = (*self.subject.plugin.command, *flags)
        words = subject.filled(command, self.places.words(**places))
        environment = control.environment(self.places.where.programs, self._environment(""))
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.places.where.checkout,
            env={**os.environ, **environment},
        )
        try:
            message, _ = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            message, _ = process.communicate()
            return None, message
        return process.returncode, message

    def _key(self, name: str, instance: str = "") -> str:
        tail = f"-{instance}" if instance else ""
        return f"bb-{self.subject.name}-{name}{tail}"

    def _runs(self, key: str) -> bool:
        return control.condition(self.places.where, key, self.places.node) in {"running", "frozen"}

    def _launch(self, key: str, command: Sequence[str], instance: str = "") -> None:
        words = subject.filled(command, self.places.words(instance=instance))
        more = self._environment(instance)
        control.launch(self.places.where, key, self.places.node, words, more)

    def _environment(self, instance: str) -> Mapping[str, str]:
        places = self.places.words(instance=instance)
        return {k: v.format_map(places) for k, v in self.subject.plugin.environment.items()}

    def _write_access(self) -> None:
        location, node = self.places.where, self.places.node
        namespace, _, account = self.subject.cluster.account.partition("/")
        plugin_token = argv.plugin_token(node, account, namespace)
        token = self.places.kubeconfig.with_suffix(".token")
        certificates.write_secret(token, kubectl.run(location, *plugin_token).strip().encode())
        cluster = store.running(location)
        document = certificates.token_kubeconfig(location, token, cluster.ports)
        certificates.write_secret(self.places.kubeconfig, document)


def named(source: subject.Subject, name: str, driver: str, *flags: str) -> subject.Subject:
    """The same subject under another name, as a driver of its own."""
    plugin = source.plugin.model_copy(update={"command": (*source.plugin.command, *flags)})
    request = {**source.device.request, "deviceClassName": driver}
    device = source.device.model_copy(update={"request": request})
    changes = {"name": name, "driver": driver, "plugin": plugin, "device": device}
    return source.model_copy(update=changes)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
