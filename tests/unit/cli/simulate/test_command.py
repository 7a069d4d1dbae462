import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from driver.cli.lazy import app
from tests.support.builders import objects

RUN = CliRunner()
ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "examples" / "simulate"
GOLDEN = ROOT / "tests" / "data" / "simulate"
PODS, CLUSTER = str(EXAMPLE / "pods.yaml"), str(EXAMPLE / "cluster.yaml")
NODES_CSV = "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,1,T4\n"
PODS_CSV = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
    "p-0,1000,1024,1,1000,,LS,Running,0,7200,0\n"
    "p-1,1000,1024,1,500,,LS,Running,3600,10800,3600\n"
    "p-2,1000,1024,0,0,,BE,Running,3600,3700,3600\n"
)


def simulate(*words: str, message: str | None = None) -> Result:
    return RUN.invoke(app, ["simulate", *words], input=message)


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def a_pod(claim: str = "gpu", **entry: str) -> dict[str, Any]:
    entries = [{"name": "gpu", **(entry or {"resourceClaimName": claim})}]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "main"}], "resourceClaims": entries},
    }


def a_claim(**fields: Any) -> dict[str, Any]:
    claim = objects.a_claim("gpu", objects.a_request(**fields))
    return {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", **claim}


def test_people_get_a_table_with_the_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    answer = simulate("-f", PODS, "--cluster", CLUSTER, "--policies", "pack")
    assert answer.exit_code == 1
    assert answer.output == (GOLDEN / "table.txt").read_text()


def test_programs_get_everything() -> None:
    answer = simulate("-f", PODS, "--cluster", CLUSTER, "--policies", "pack", "-o", "json")
    assert answer.exit_code == 1
    assert json.loads(answer.output) == json.loads((GOLDEN / "answer.json").read_text())
    as_yaml = simulate("-f", PODS, "--cluster", CLUSTER, "--policies", "pack", "-o", "yaml")
    assert yaml.safe_load(as_yaml.output) == json.loads(answer.output)


def test_the_exit_code_is_0_when_all_pods_are_placed(tmp_path: Path) -> None:
    files = [written(tmp_path, "pod.json", json.dumps(a_pod())), "-f"]
    answer = simulate("-f", *files, "-", "--cluster", CLUSTER, message=json.dumps(a_claim()))
    assert (answer.exit_code, "1 of 1 pod placed" in answer.output) == (0, True)


def test_a_workload_mix_can_be_given(tmp_path: Path) -> None:
    shares = "workloads: [{face: mps, percent: 80}]"
    smaller = a_claim(deviceClassName="gpu-mps.ration.dev")
    path = written(tmp_path, "f.yaml", yaml.safe_dump_all([a_pod(), smaller]))
    usual = written(tmp_path, "workload-mix.yaml", shares)
    common = ("-f", path, "--cluster", CLUSTER, "--policies", "fragmentation", "-o", "json")
    whys = {
        json.loads(simulate(*common, *more).output)["pods"][0]["why"]
        for more in ((), ("--workload-mix", usual))
    }
    assert len(whys) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("workloads: [{gpu: 8}]", "workload-mix.yaml.workloads.0.gpu: is not a field"),
        ("- gpus: 8", "workload-mix.yaml: is something else; expected one WorkloadMix document"),
        ("", "workload-mix.yaml: is empty"),
    ],
)
def test_an_unreadable_workload_mix_exits_2_with_its_field(
    tmp_path: Path, text: str, words: str
) -> None:
    usual = written(tmp_path, "workload-mix.yaml", text)
    answer = simulate("-f", PODS, "--cluster", CLUSTER, "--workload-mix", usual)
    assert (answer.exit_code, words in answer.output) == (2, True), answer.output


def test_pods_that_share_a_claim_share_its_devices(tmp_path: Path) -> None:
    two = {**a_pod(), "metadata": {"name": "two"}}
    path = written(tmp_path, "f.yaml", yaml.safe_dump_all([a_pod(), two, a_claim()]))
    answer = simulate("-f", path, "--cluster", CLUSTER, "-o", "json")
    item, other = json.loads(answer.output)["pods"]
    assert (item["node"], len(item["devices"]), other["devices"]) == (other["node"], 1, [])
    assert other["why"] == "Uses what its claims have already"
    assert answer.exit_code == 0


def test_a_class_that_is_not_there_is_told_as_the_controller_tells_it(tmp_path: Path) -> None:
    both = [a_pod(), a_claim(deviceClassName="none.example.com")]
    path = written(tmp_path, "f.yaml", yaml.safe_dump_all(both))
    answer = simulate("-f", path, "--cluster", CLUSTER, "-o", "json")
    (pod,) = json.loads(answer.output)["pods"]
    assert (answer.exit_code, pod["state"]) == (1, "waits")
    assert pod["why"] == (
        "kube-scheduler allocates gpu: DeviceClassNotFound: claim default/gpu: "
        "request gpu names class none.example.com"
    )


def test_a_template_that_is_not_there_is_named(tmp_path: Path) -> None:
    pod = a_pod(resourceClaimTemplateName="none")
    path = written(tmp_path, "f.yaml", yaml.safe_dump(pod))
    answer = simulate("-f", path, "--cluster", CLUSTER, "-o", "json")
    (reported,) = json.loads(answer.output)["pods"]
    assert answer.exit_code == 1
    assert reported["why"] == "waits for its claim: no ResourceClaimTemplate default/none"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Pod\nmetadata:\n  name: a: b\n", "f.yaml line 3: is no YAML"),
        ("kind: Pod\nkind: Pod\n", "f.yaml line 2: kind stands twice"),
        ("", "f.yaml: is empty; expected Kubernetes objects, as YAML or JSON"),
        ("kind: Service\napiVersion: v1\n", "f.yaml: holds no pod, but 1 Service; expected Pods"),
        ("a,b,c\n1,2,3\n", "object (without a name): is str; expected an API object"),
        (
            "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {containers: 3}\n",
            "Pod a: spec.containers: is int; expected a list",
        ),
        (NODES_CSV, "f.yaml: is a list of nodes; expected it with --cluster, and pods with -f"),
        (
            PODS_CSV.replace("1,500", "1,5000"),
            "f.yaml line 3, gpu_milli: is '5000'; expected a whole number up to 1000",
        ),
    ],
)
def test_input_that_cannot_be_read_exits_2_with_its_place(
    tmp_path: Path, text: str, words: str
) -> None:
    answer = simulate("-f", written(tmp_path, "f.yaml", text), "--cluster", CLUSTER)
    assert (answer.exit_code, words in answer.output) == (2, True), answer.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: [\n", "cluster.yaml line 2: is no YAML"),
        ("kind: Service\n", "cluster.yaml: has no nodes"),
        ("kind: Node\napiVersion: v1\n", "Node (without a name): metadata.name: is missing"),
        (PODS_CSV, "cluster.yaml: is a list of pods; expected it with -f"),
        (NODES_CSV.replace("64000", "64 cores"), "cluster.yaml line 2, cpu_milli: is '64 cores'"),
    ],
)
def test_a_cluster_that_cannot_be_read_exits_2_with_its_place(
    tmp_path: Path, text: str, words: str
) -> None:
    answer = simulate("-f", PODS, "--cluster", written(tmp_path, "cluster.yaml", text))
    assert (answer.exit_code, words in answer.output) == (2, True), answer.output


def test_pods_of_device_plugins_are_converted_where_that_is_asked(tmp_path: Path) -> None:
    limits = {"nvidia.com/gpu": 2, "cpu": 1}
    spec = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "old"}}
    text = yaml.safe_dump({**job, "spec": {"parallelism": 2, "template": {"spec": spec}}})
    words = ["-f", written(tmp_path, "f.yaml", text), "--cluster", CLUSTER, "-o", "json"]
    left = json.loads(simulate(*words).output)
    assert [pod["state"] for pod in left["pods"]] == ["left out", "left out"]
    assert left["notes"] == [
        "2 pods ask nvidia.com/gpu without a claim: left out, but for --convert"
    ]
    answer = simulate(*words, "--convert")
    assert answer.exit_code == 1
    document = json.loads(answer.output)
    assert [(pod["state"], len(pod["devices"])) for pod in document["pods"]] == [
        ("placed", 2),
        ("waits", 0),
    ]
    assert document["notes"] == []


def test_pods_of_a_labelled_class_of_the_manifests_are_converted(tmp_path: Path) -> None:
    selector = 'device.driver == "gpu.ration.dev"'
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
    raw = objects.a_class("mine", selector, extendedResourceName="example.com/gpu")
    device_class = {**kind, **raw}
    device_class["metadata"]["labels"] = {"ration.dev/convert": "true"}
    limits = {"example.com/gpu": 1}
    spec = {"containers": [{"name": "main", "resources": {"limits": limits}}]}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "new"}, "spec": spec}
    text = yaml.safe_dump_all([pod, device_class])
    words = ["-f", written(tmp_path, "f.yaml", text), "--cluster", CLUSTER, "-o", "json"]
    (converted,) = json.loads(simulate(*words, "--convert").output)["pods"]
    assert (converted["state"], len(converted["devices"])) == ("placed", 1)


def test_unconvertible_requests_are_reported_with_their_field(tmp_path: Path) -> None:
    spec = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1.5"}}}]}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "old"}, "spec": spec}
    path = written(tmp_path, "f.yaml", yaml.safe_dump(pod))
    answer = simulate("-f", path, "--cluster", CLUSTER, "--convert")
    assert answer.exit_code == 2
    location = "Pod old: spec.containers[0].resources.limits[nvidia.com/gpu]: is 1.5"
    assert location in answer.output


def test_without_files_the_flag_is_named() -> None:
    answer = simulate("--cluster", CLUSTER)
    assert (answer.exit_code, "-f: holds no pod" in answer.output) == (2, True)


def test_an_unknown_policy_exits_2_with_those_there_are() -> None:
    answer = simulate("-f", PODS, "--cluster", CLUSTER, "--policies", "luck")
    assert (answer.exit_code, "'luck' is no policy; expected some of" in answer.output) == (2, True)


def test_unreadable_cluster_objects_are_noted_and_skipped(tmp_path: Path) -> None:
    bad = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "bad"}, "spec": []}
    (tmp_path / "a.yaml").write_text(Path(CLUSTER).read_text())
    (tmp_path / "b.json").write_text(json.dumps(bad))
    answer = simulate("-f", PODS, "--cluster", str(tmp_path), "-o", "json")
    document = json.loads(answer.output)
    assert document["total"]["placed"] == 4
    assert "of the cluster: Node bad: spec: is list; expected an object" in document["notes"]


def test_pods_of_the_cluster_that_wait_already_are_noted(tmp_path: Path) -> None:
    waiting = a_pod("later")
    waiting["metadata"]["name"] = "old"
    (tmp_path / "a.yaml").write_text(Path(CLUSTER).read_text())
    (tmp_path / "b.json").write_text(json.dumps(waiting))
    document = json.loads(simulate("-f", PODS, "--cluster", str(tmp_path), "-o", "json").output)
    assert "pods of the cluster that have no node yet: 1, not tried here" in document["notes"]


def test_a_trace_is_replayed_on_its_own_nodes(tmp_path: Path) -> None:
    pods, nodes = written(tmp_path, "p.csv", PODS_CSV), written(tmp_path, "n.csv", NODES_CSV)
    answer = simulate("-f", pods, "--cluster", nodes, "-o", "json")
    document = json.loads(answer.output)
    assert answer.exit_code == 1
    assert [(pod["name"], pod["state"]) for pod in document["pods"]] == [
        ("p-0", "placed"),
        ("p-1", "waits"),
        ("p-2", "placed"),
    ]
    assert document["total"]["gpusInUsePercent"] == 100


def test_with_a_timeline_pods_come_and_go_and_wait(tmp_path: Path) -> None:
    pods, nodes = written(tmp_path, "p.csv", PODS_CSV), written(tmp_path, "n.csv", NODES_CSV)
    words = ["-f", pods, "--cluster", nodes, "--timeline"]
    document = json.loads(simulate(*words, "-o", "json").output)
    assert [(pod["placed"], pod["left"], pod["waited"]) for pod in document["pods"]] == [
        (0, 7200, 0),
        (7200, 14400, 3600),
        (3600, 3700, 0),
    ]
    assert [(entry["at"], entry["percent"]) for entry in document["course"]] == [
        (0, 100),
        (3600, 100),
        (3700, 100),
        (7200, 50),
        (14400, 0),
    ]
    answer = simulate(*words)
    assert answer.exit_code == 0
    assert "GPUs in use: 0.75 of 1 (75.00 %) on average, 1 of 1 (100.00 %) at most" in " ".join(
        answer.output.split()
    )
    assert "1 pod had to wait, 1.00 h on average, 1.00 h at most" in " ".join(answer.output.split())


def test_a_pod_of_two_lists_is_refused(tmp_path: Path) -> None:
    lists = [written(tmp_path, name, PODS_CSV) for name in ("a.csv", "b.csv")]
    nodes = written(tmp_path, "n.csv", NODES_CSV)
    answer = simulate("-f", lists[0], "-f", lists[1], "--cluster", nodes)
    assert (answer.exit_code, "b.csv: pod p-0 stands in two lists" in answer.output) == (2, True)


def test_a_trace_may_run_on_a_dump_and_manifests_on_a_traces_nodes(tmp_path: Path) -> None:
    pods, nodes = written(tmp_path, "p.csv", PODS_CSV), written(tmp_path, "n.csv", NODES_CSV)
    on_dump = json.loads(simulate("-f", pods, "--cluster", CLUSTER, "-o", "json").output)
    assert on_dump["pods"][1]["devices"][0]["consumed"]["compute"] == "50"
    both = [json.dumps(a_pod()), json.dumps(a_claim())]
    files = [written(tmp_path, f"{n}.json", text) for n, text in enumerate(both)]
    on_trace = simulate("-f", files[0], "-f", files[1], "--cluster", nodes, "-o", "json")
    assert json.loads(on_trace.output)["pods"][0]["devices"][0]["device"] == "gpu-0"


def test_a_timeline_without_times_is_refused(tmp_path: Path) -> None:
    bare = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1000\n"
    nodes = written(tmp_path, "n.csv", NODES_CSV)
    answer = simulate("-f", written(tmp_path, "p.csv", bare), "--cluster", nodes, "--timeline")
    assert answer.exit_code == 2
    assert "pod p has no creation_time; expected seconds, for --timeline" in answer.output


def test_many_pods_are_summed_up_by_what_became_of_them(tmp_path: Path) -> None:
    lines = "".join(f"p-{n},1,1,1,1000\n" for n in range(300))
    pods = written(tmp_path, "p.csv", f"name,cpu_milli,memory_mib,num_gpu,gpu_milli\n{lines}")
    answer = simulate("-f", pods, "--cluster", written(tmp_path, "n.csv", NODES_CSV))
    shown = [line.split() for line in answer.output.splitlines()]
    assert ["299", "waits"] in [line[:2] for line in shown]
    assert ["1", "placed"] in shown


def test_a_dump_of_a_dump_decides_alike_and_says_no_more(tmp_path: Path) -> None:
    answer = RUN.invoke(app, ["dump", "--cluster", CLUSTER])
    assert answer.exit_code == 0
    assert yaml.safe_load(answer.output) == yaml.safe_load(Path(CLUSTER).read_text())
    as_json = RUN.invoke(app, ["dump", "--cluster", CLUSTER, "-o", "json"])
    assert json.loads(as_json.output) == yaml.safe_load(answer.output)
    again = written(tmp_path, "again.yaml", answer.output)
    both = [simulate("-f", PODS, "--cluster", name, "-o", "json") for name in (CLUSTER, again)]
    assert both[0].output == both[1].output


def test_a_dump_of_what_cannot_be_read_exits_2() -> None:
    answer = RUN.invoke(app, ["dump", "--cluster", "none.yaml"])
    assert (answer.exit_code, "none.yaml: No such file" in answer.output) == (2, True)


def test_help_teaches_how_to_begin_and_what_is_not_looked_at() -> None:
    joined = " ".join(simulate("--help").output.split())
    for words in (
        "ration simulate -f pods.yaml",
        "ration dump > cluster.yaml",
        "--cluster openb_node_list_gpu_node.csv",
        "Not considered: quotas",
        "Exit codes",
        "Nothing is written",
    ):
        assert words in joined
