"""Readers of an exposed page: accounts, and the page of a pod over HTTP."""

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import urllib3

from driver.kube import gvr
from hack.chart import helm
from tests.e2e import playground, release

MANIFEST = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: passer-by, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-page-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-page-reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-page-reader}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list]}
- {apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [list]}
"""
"""One account that may list what the page shows, and one that may not."""


@contextlib.contextmanager
def forwarded(pod: str) -> Iterator[str]:
    """The page of a pod, at a URL of this host."""
    command = [str(release.WHERE.program("kubectl")), f"--namespace={helm.NAMESPACE}"]
    environment = {**os.environ, "KUBECONFIG": str(release.WHERE.kubeconfig)}
    process = subprocess.Popen(
        [*command, "port-forward", f"pod/{pod}", ":8081"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r"127\.0\.0\.1:(\d+)", line)
        assert match, line
        yield f"http://localhost:{match[1]}"
    finally:
        process.terminate()
        process.communicate()


def replicas(field: playground.Playground) -> list[str]:
    selector = "app.kubernetes.io/component=controller"
    items = field.kube.list(gvr.PODS, namespace=helm.NAMESPACE, label_selector=selector).items
    return [
        item["metadata"]["name"] for item in items if not item["metadata"].get("deletionTimestamp")
    ]


def fetch(base: str, path: str, token: str = "") -> tuple[int, dict[str, Any]]:
    """The JSON of a path."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"{base}/api/v1/{path}"
    answer = urllib3.request("GET", url, headers=headers, retries=False, timeout=10)
    return answer.status, json.loads(answer.data)


def somebody_reads(field: playground.Playground) -> None:
    """Tokenreviews, subjectaccessreviews: create. Pods: get, by the replica that stands by."""
    field.cluster.kubectl("apply", "-f", "-", input=MANIFEST)
    try:
        token = field.cluster.kubectl("create", "token", "reader", "-n", "default").strip()
        for pod in replicas(field):
            with forwarded(pod) as base:

                def answered(base: str = base) -> bool:
                    return fetch(base, "fleet", token)[0] == 200

                playground.until(answered, 60, f"{pod} answers")
    finally:
        field.cluster.kubectl("delete", "-f", "-", input=MANIFEST)
