from hack.cluster import kwok


def test_its_account_and_rights_are_applied_and_what_only_kustomize_reads_is_not() -> None:
    kinds = ("Kustomization", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "FlowSchema")
    kept = kwok.installed([{"kind": kind, "metadata": {"name": "kwok"}} for kind in kinds])
    assert [one["kind"] for one in kept] == list(kinds[1:])
