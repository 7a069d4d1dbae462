"""Our kinds as the chart installs them: those of deploy/crds."""

from typing import Any

import pytest
import yaml

from hack.chart import helm
from hack.crds import kinds
from tests.contract.chart import rendered

pytestmark = rendered.BUILDS_HELM
KEEP = {
    "helm.sh/resource-policy": "keep",
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
}


def crds(*flags: str) -> dict[str, Any]:
    return {
        x["metadata"]["name"]: x
        for x in rendered.objects(*flags)
        if x["kind"] == "CustomResourceDefinition"
    }


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.name)
def test_the_chart_installs_what_deploy_crds_holds(kind: kinds.Kind) -> None:
    path = helm.ROOT / "deploy" / "crds" / f"{kind.resource.plural}.yaml"
    assert crds()[kind.crd]["spec"] == yaml.safe_load(path.read_text())["spec"]


def test_kinds_stay_when_it_is_uninstalled_unless_they_are_not_to() -> None:
    assert set(crds()) == {kind.crd for kind in kinds.KINDS}
    assert all(x["metadata"]["annotations"] == KEEP for x in crds().values())
    gone = crds("--set=crds.keep=false")
    assert len(gone) == len(kinds.KINDS)
    assert not [x for x in gone.values() if "annotations" in x["metadata"]]


def test_kinds_are_made_before_what_names_them() -> None:
    results = [x["kind"] for x in rendered.objects()]
    last = len(results) - 1 - results[::-1].index("CustomResourceDefinition")
    assert last < results.index("ClusterRole")
