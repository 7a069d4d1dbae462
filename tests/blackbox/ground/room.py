"""A namespace on a seat's node: claims of the subject's devices, pods that show what they have."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from driver.kube import client, gvr
from tests.blackbox.ground import seat as seats
from tests.e2e import playground

Raw = dict[str, Any]
until = playground.until
CLAIM_API = "resource.k8s.io/v1"
REFUSED = "FailedPrepareDynamicResources"
_SPLIT = "--"
_nudges = itertools.count(1)


class Room:
    """Workspace of a case; `ground` is its namespace."""

    def __init__(self, seat: seats.Seat, ground: playground.Playground) -> None:
        self.seat = seat
        self.ground = ground
        self.kube: client.KubeClient = ground.kube
        self.cluster = ground.cluster
        self.namespace = ground.namespace
        self.proxy = seat.proxy

    def a_request(self, name: str = "one", count: int = 1, **exactly: Any) -> Raw:
        """A request of a claim, for plain devices unless `exactly` says otherwise."""
        request = {**(exactly or self.seat.subject.device.request), "count": count}
        return {"name": name, "exactly": request}

    def claim(self, name: str, *requests: Raw, config: Sequence[Raw] = (), **more: Any) -> None:
        """Make a claim; without requests, for one plain device."""
        self.ground.create(a_claim(name, requests or (self.a_request(),), config, **more))

    def template(self, name: str, *requests: Raw) -> None:
        """Make a template of such claims."""
        claim = a_claim(name, requests or (self.a_request(),), ())
        body = {**claim, "kind": "ResourceClaimTemplate", "spec": {"spec": claim["spec"]}}
        self.ground.create(body)

    def config(self, parameters: Mapping[str, Any], *requests: str) -> Raw:
        """An opaque configuration for the subject's driver."""
        opaque = {"driver": self.seat.subject.driver, "parameters": dict(parameters)}
        return {"opaque": opaque, **({"requests": list(requests)} if requests else {})}

    def pod(self, name: str, *claims: str, **spec: Any) -> None:
        """Make a pod with one container that has all of these claims, and shows them."""
        self.ground.create(self.a_pod(name, *claims, **spec))

    def a_pod(self, name: str, *claims: str, **spec: Any) -> Raw:
        """`template=` claims are made for it; `containers=` maps names to the claims they name."""
        template, look = spec.pop("template", ""), spec.pop("look", None)
        entries = [{"name": claim, "resourceClaimName": claim} for claim in claims]
        if template:
            entries.append({"name": "made", "resourceClaimTemplateName": template})
        everything: Mapping[str, Sequence[str]] = {"main": [entry["name"] for entry in entries]}
        expected: Mapping[str, Sequence[str]] = spec.pop("containers", everything)
        ends = spec.pop("ends", "")
        containers = [self._container(key, names, look, ends) for key, names in expected.items()]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "containers": containers,
                "resourceClaims": entries,
                "nodeSelector": playground.on(self.seat.node),
                "terminationGracePeriodSeconds": 1,
                "restartPolicy": "Never" if ends else "Always",
                **spec,
            },
        }

    def _container(self, name: str, claims: Sequence[str], look: str | None, ends: str) -> Raw:
        shown = look or self.seat.subject.device.look
        then = ends or "exec sleep 3600"
        named = [
            {"name": claim.partition("/")[0], "request": claim.partition("/")[2]}
            for claim in claims
        ]
        return {
            "name": name,
            "image": "ration.local/workload:latest",
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", f"{shown}; echo {_SPLIT}; env; echo {_SPLIT}; {then}"],
            "resources": {
                "requests": {"cpu": "10m"},
                "claims": [{k: v for k, v in entry.items() if v} for entry in named],
            },
        }

    def init_container(self, name: str, *claims: str) -> Raw:
        """Return an entry of `initContainers` that lists its devices and ends."""
        return self._container(name, claims, None, "true")

    def running(self, name: str, within_s: float = 60) -> Raw:
        """Wait until a pod runs."""
        return self.ground.running(name, within_s)

    def phase(self, name: str) -> str:
        """The pod's phase; "" when it is gone."""
        match = self.ground.find(name)
        return "" if match is None else str(match["status"].get("phase", ""))

    def ended(self, name: str, within_s: float = 60) -> None:
        """Wait until a pod is done."""
        until(lambda: self.phase(name) in {"Succeeded", "Failed"}, within_s, f"{name} is done")

    def delete(self, *names: str, wait: bool = True, within_s: float = 100) -> None:
        """Delete pods; they are gone, and unprepared, when this returns."""
        for name in names:
            self.kube.delete(gvr.PODS, name, self.namespace)
        if wait:
            message = f"{', '.join(names)} are gone"
            until(lambda: not any(map(self.ground.find, names)), within_s, message)

    def force_delete(self, name: str) -> None:
        """The API forgets the pod at once; its containers end when the kubelet sees it."""
        force = ("--force", "--grace-period=0", "--wait=false")
        self.cluster.kubectl("delete", "pod", name, "-n", self.namespace, *force)

    def nudge(self, *names: str) -> None:
        """Have the kubelet look at pods now: it tries again only after 60 to 90 s by itself."""
        for name in names:
            body = {"metadata": {"annotations": {"nudge": str(next(_nudges))}}}
            self.kube.patch(gvr.PODS, name, body, namespace=self.namespace)

    def soon(self, *names: str, within_s: float = 60) -> None:
        """Wait until pods run, without the kubelet's pause between two tries."""

        def all_run() -> bool:
            waiting = [name for name in names if self.phase(name) != "Running"]
            self.nudge(*waiting)
            return not waiting

        until(all_run, within_s, f"{', '.join(names)} run")

    def has(self, name: str, container: str = "main") -> list[str]:
        """Return what the look of a container printed: a line for each device."""
        return self._shown(name, container)[0]

    def environment(self, name: str, container: str = "main") -> list[str]:
        """The lines of `env` in a container."""
        return self._shown(name, container)[1]

    def _shown(self, name: str, container: str) -> tuple[list[str], list[str]]:
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/log"

        def parts() -> list[str]:
            text = self.kube.get_text(path, {"container": container})
            words = ("\n" + text).split(f"\n{_SPLIT}\n")
            return words if len(words) > 2 else []

        looked, shown, _ = until(parts, 30, f"{container} of {name} shows what it has")
        return looked.split(), shown.splitlines()

    def uid(self, claim: str) -> str:
        """Return the uid of a claim."""
        return str(self.ground.claim(claim)["metadata"]["uid"])

    def made_for(self, pod: str) -> str:
        """The claim that was made for a pod from a template."""

        def made() -> str:
            result = self.ground.pod(pod)["status"].get("resourceClaimStatuses") or [{}]
            return str(result[0].get("resourceClaimName") or "")

        return until(made, 20, f"a claim is made for {pod}")

    def results(self, claim: str) -> list[Raw]:
        """Return what a claim was given."""
        result = self.ground.claim(claim).get("status", {}).get("allocation") or {}
        return list(result.get("devices", {}).get("results", ()))

    def allocate(self, claim: str, allocation: Raw) -> None:
        """Allocate a claim past the scheduler, which goes by what it finds allocated."""
        kind = gvr.RESOURCE_CLAIMS
        protected = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
        self.kube.patch(kind, claim, protected, namespace=self.namespace)
        body = {"status": {"allocation": allocation}}
        self.kube.patch(kind, claim, body, namespace=self.namespace, subresource="status")

    def prepares(self, claim: str) -> list[Any]:
        """The kubelet's calls to prepare it."""
        return self.proxy.records.calls("NodePrepareResources", claim)

    def unprepares(self, claim: str) -> list[Any]:
        """The kubelet's calls to unprepare it."""
        return self.proxy.records.calls("NodeUnprepareResources", claim)

    def unprepared(self, claim: str, within_s: float = 60) -> None:
        """Wait for a call to unprepare it that ends well."""
        until(
            lambda: any(unprepared.is_good() for unprepared in self.unprepares(claim)),
            within_s,
            f"{claim} is unprepared",
        )

    def refused(self, pod: str, within_s: float = 60) -> list[str]:
        """Wait for the event that a pod's claims could not be prepared."""
        return self.ground.told(pod, REFUSED, within_s)

    def stays_pending(self, pod: str, for_s: float = 5) -> None:
        """Fail if the pod gets out of Pending."""
        until(lambda: self.phase(pod) == "Pending", 10, f"{pod} is pending")
        self.seat.stays(lambda: self.phase(pod), for_s, 0.5)


def a_claim(name: str, requests: Sequence[Raw], config: Sequence[Raw], **more: Any) -> Raw:
    """A ResourceClaim."""
    devices = {"requests": list(requests), **({"config": list(config)} if config else {}), **more}
    return {
        "apiVersion": CLAIM_API,
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": devices},
    }
