from hack.cluster import kwok


def test_its_account_and_rights_are_applied_and_what_only_kustomize_reads_is_not() -> None:
    kinds = ("Kustomization", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "FlowSchema")
    installed = kwok.installed([{"kind": kind, "metadata": {"name": "kwok"}} for kind in kinds])
    assert [entry["kind"] for entry in installed] == list(kinds[1:])


def test_only_the_pods_of_a_job_take_a_while() -> None:
    names = ("pod-ready", "pod-complete", "pod-delete")
    created = [
        {"kind": "Stage", "metadata": {"name": name}, "spec": {"next": {}}} for name in names
    ]
    stages = kwok.stages([{"kind": "Kustomization"}, *created])
    assert [stage["metadata"]["name"] for stage in stages] == [*names]
    assert ["delay" in stage["spec"] for stage in stages] == [False, True, False]
