"""Acts on the cluster for the campaign: applies, looks, and ends what it made."""

import base64
import contextlib
import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from driver import errors, ids
from driver.kube import client, gvr
from driver.resources.core import pods
from driver.resources.dra import claims
from hack.cluster import api
from hack.cluster import errors as cluster_errors
from tests.agreement import judge, rounds
from tests.fakes.faultproxy import plan, proxy

PREFIX = "agreement-"
_LOOK_S = 0.25
_CALM_S, _HEALED_S = 30.0, 120.0
"""Between two faults both controllers run and one leads for so long; waited for at most so long."""
_SCHEDULER = "kube-scheduler"
_ACCOUNT = "agreement-scheduler"
_ROLES = ("system:kube-scheduler", "system:volume-scheduler")


class Ground:
    """The cluster, and the judge who looks at it while anything is waited for."""

    def __init__(self, cluster: api.Cluster, kube: client.KubeClient, judged: judge.Judge) -> None:
        self.cluster = cluster
        self.kube = kube
        self.judge = judged
        self._looking = threading.Lock()
        self._mending = threading.Lock()
        self._faulty = threading.Lock()
        self._looked_at = 0.0
        self._seen: tuple[list[pods.Pod], dict[ids.Key, claims.Claim]] = ([], {})

    def apply(self, namespace: str, *objects: rounds.Raw) -> None:
        """Apply objects with kubectl, as a user does."""
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]})
        self.cluster.kubectl("apply", "-n", namespace, "-f", "-", input=document)

    def look(self) -> tuple[list[pods.Pod], dict[ids.Key, claims.Claim]]:
        """Look at every pod and claim of the campaign, and let the judge see them.

        Claims are listed after pods: what a pod was bound by is in the later list. The API server
        itself is not delayed, so an error of it ends the campaign. Lanes share a fresh look.
        """
        asked_at = time.monotonic()
        with self._looking:
            if self._looked_at < asked_at:
                self._seen = self._listed()
            return self._seen

    def _listed(self) -> tuple[list[pods.Pod], dict[ids.Key, claims.Claim]]:
        self._looked_at = time.monotonic()
        seen = [
            pods.parse(raw)
            for raw in self.kube.list(gvr.PODS).items
            if raw["metadata"]["namespace"].startswith(PREFIX)
        ]
        listed = (claims.parse(raw) for raw in self.kube.list(gvr.RESOURCE_CLAIMS).items)
        held = {claim.key: claim for claim in listed if claim.namespace.startswith(PREFIX)}
        self.judge.look(time.monotonic(), seen, held)
        return seen, held

    def running(self, namespace: str, app: str, revision: int) -> int:
        """Count the pods of an app's revision that run, or ran to their end, after a look."""
        seen, _ = self.look()
        return sum(
            pod.phase in {"Running", "Succeeded"} and not pod.deleting
            for pod in seen
            if pod.namespace == namespace
            and pod.labels.get("app") == app
            and pod.labels.get("revision") == str(revision)
        )

    def node_of_companion(self, namespace: str, name: str) -> str | None:
        """Return the node of the pod that others are near; None while it has none."""
        words = ("get", "pod", "-n", namespace, "-l", f"companion={name}", "-o")
        live = "jsonpath={.items[?(@.status.phase=='Running')].spec.nodeName}"
        nodes = self.cluster.kubectl(*words, live).split()
        return nodes[0] if len(nodes) == 1 else None

    def pause(self, seconds: float) -> None:
        """Let time pass, looking."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self.look()
            time.sleep(_LOOK_S)

    def is_empty(self, namespace: str) -> bool:
        """Tell whether no pod and no allocation of a namespace is left, after a look."""
        seen, held = self.look()
        here = [pod for pod in seen if pod.namespace == namespace]
        return not here and not [
            claim
            for claim in held.values()
            if claim.namespace == namespace and (claim.allocation or claim.consumers)
        ]

    def leader(self) -> str | None:
        """Return the controller that holds the Lease, as a component; None: nobody."""
        with contextlib.suppress(errors.ApiError):
            lease = self.kube.get(gvr.LEASES, "ration-controller", "ration-system")
            holder = str((lease.get("spec") or {}).get("holderIdentity") or "")
            names = (name for name in self.cluster.controllers() if holder.startswith(name))
            return next(names, None)
        return None

    def revive(self) -> None:
        """Start controllers that have ended, unless another lane is about to."""
        if not self._mending.acquire(blocking=False):
            return
        with contextlib.ExitStack() as held:
            held.callback(self._mending.release)
            ended = [name for name in self.cluster.controllers() if self.cluster.pid(name) is None]
            for name in ended:
                self._start(name)

    def _start(self, name: str) -> None:
        with contextlib.suppress(cluster_errors.ClusterError):
            self.cluster.start(name)

    @contextlib.contextmanager
    def fault(self) -> Iterator[None]:
        """Be the only lane with a fault, once the last fault of any lane has healed for a while.

        Two controllers survive the loss of one; lanes that break both at once leave no leader for
        as long as they like, and a pod that waits then says nothing about the controllers.
        """
        with self._faulty:
            ends = time.monotonic() + _HEALED_S
            calm_since = time.monotonic()
            while time.monotonic() < min(ends, calm_since + _CALM_S):
                self.revive()
                if not self._is_whole():
                    calm_since = time.monotonic()
                time.sleep(_LOOK_S * 2)
            yield

    def _is_whole(self) -> bool:
        """Tell whether every controller runs, and one of those that run leads."""
        running = {name for name in self.cluster.controllers() if self.cluster.pid(name)}
        return len(running) == len(self.cluster.controllers()) and self.leader() in running

    def break_leader(self, source: random.Random) -> None:
        """Kill the leading controller, or freeze it for a while."""
        with self._mending:
            leader = self.leader()
            if leader is None or self.cluster.pid(leader) is None:
                return
            if source.random() < 0.5:
                self.cluster.kill(leader)
                self.pause(1.0)
                self.cluster.start(leader)
                return
            self.cluster.freeze(leader)
            try:
                self.pause(source.uniform(5.0, 20.0))
            finally:
                self.cluster.thaw(leader)


@contextlib.contextmanager
def delayed(ground: Ground, folder: Path, seed: int) -> Iterator[list[proxy.FaultProxy]]:
    """Delay the requests of kube-scheduler and of the controllers, each by a proxy of its own."""
    server, authority = _server(ground.cluster, folder)
    names = (_SCHEDULER, *ground.cluster.controllers())
    with contextlib.ExitStack() as ends:
        between = []
        for index, name in enumerate(names):
            odds = (
                *((0.05 / 3, plan.Slow(late)) for late in (3.0, 1.0, 0.5)),
                (0.3, plan.Slow(0.05)),
            )
            kinds = (*plan.WRITES, plan.Kind.GET)
            chooser = plan.Seeded(seed + index, dict.fromkeys(kinds, odds))
            token = _token(ground.cluster, name)
            own = ends.enter_context(proxy.FaultProxy(server, chooser, authority, token))
            below = folder / name
            below.mkdir()
            kubeconfig = own.kubeconfig(below)
            flags = [f"--kubeconfig={kubeconfig}"]
            if name == _SCHEDULER:  # the proxy reads watches line by line
                flags.append("--kube-api-content-type=application/json")
            ends.enter_context(ground.cluster.with_flags(name, *flags))
            between.append(own)
        yield between


def _server(cluster: api.Cluster, folder: Path) -> tuple[str, Path]:
    """Return the API server's address and a file with its authority."""
    authority = folder / "authority.pem"
    words = ("config", "view", "--raw", "--minify", "-o")
    template = "jsonpath={.clusters[0].cluster.certificate-authority-data}"
    encoded = cluster.kubectl(*words, template)
    server = cluster.kubectl(*words, "jsonpath={.clusters[0].cluster.server}")
    authority.write_bytes(base64.b64decode(encoded))
    return server.strip(), authority


def _token(cluster: api.Cluster, component: str) -> str:
    """Return a token for a component: the proxy passes on tokens, not certificates."""
    account = ("ration-controller", "-n", "ration-system")
    if component == _SCHEDULER:
        _grant(cluster)
        account = (_ACCOUNT, "-n", "kube-system")
    return cluster.kubectl("create", "token", *account, "--duration=4h").strip()


def _grant(cluster: api.Cluster) -> None:
    """Let a service account do what kube-scheduler may."""
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": _ACCOUNT, "namespace": "kube-system"},
    }
    subject = {"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": "kube-system"}
    bindings = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{_ACCOUNT}-{role.removeprefix('system:')}"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [subject],
        }
        for role in _ROLES
    ]
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": [account, *bindings]})
    cluster.kubectl("apply", "-f", "-", input=document)
