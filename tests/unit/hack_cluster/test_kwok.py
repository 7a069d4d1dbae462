from hack.cluster import kwok


def test_its_account_and_rights_are_applied_and_what_only_kustomize_reads_is_not() -> None:
    kinds = ("Kustomization", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "FlowSchema")
    kept = kwok.installed([{"kind": kind, "metadata": {"name": "kwok"}} for kind in kinds])
    assert [one["kind"] for one in kept] == list(kinds[1:])


def test_only_the_pods_of_a_job_take_a_while() -> None:
    names = ("pod-ready", "pod-complete", "pod-delete")
    made = [{"kind": "Stage", "metadata": {"name": name}, "spec": {"next": {}}} for name in names]
    found = kwok.stages([{"kind": "Kustomization"}, *made])
    assert [one["metadata"]["name"] for one in found] == [*names]
    assert ["delay" in one["spec"] for one in found] == [False, True, False]
