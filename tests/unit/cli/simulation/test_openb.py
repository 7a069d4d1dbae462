import pytest

from driver import errors
from driver.cli.simulation import openb, replay, scheduler
from driver.resources.dra import slices
from driver.scheduling.allocator import types as allocator_types
from tests.support import snapshots

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\nn-1,32000,1024,1,T4\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
    "p-0,12000,16384,1,1000,,LS,Running,0,100,10\n"
    "p-1,6000,128,1,460,T4|V100M16,LS,Running,5,105,\n"
    "p-2,1000,128,0,0,,BE,Running,7,9,8\n"
)


def test_lists_are_known_by_how_they_begin() -> None:
    assert (openb.is_nodes(NODES), openb.is_pods(NODES)) == (True, False)
    assert (openb.is_nodes(PODS), openb.is_pods(PODS)) == (False, True)
    assert not openb.is_pods("kind: Pod\n")


def test_a_list_of_nodes_is_read() -> None:
    assert openb.read_nodes(NODES, "f") == (
        openb.Node("n-0", 64000, 262144, 2, "P100"),
        openb.Node("n-1", 32000, 1024, 1, "T4"),
    )


def test_a_list_of_pods_is_read_with_its_times() -> None:
    whole, part, alone = openb.read_pods(PODS, "f")
    assert whole.pod == openb.Pod(12000, 16384, 1, 1000, ())
    assert part.pod == openb.Pod(6000, 128, 1, 460, ("T4", "V100M16"))
    assert (alone.pod.gpus, alone.pod.milli, alone.pod.demand) == (0, 0, 0)
    assert [pod_row.created for pod_row in (whole, part, alone)] == [0.0, 5.0, 7.0]
    assert [pod_row.duration_s for pod_row in (whole, part, alone)] == [90.0, 100.0, 1.0]


def test_times_may_be_absent() -> None:
    (row,) = openb.read_pods("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,1,1000\n", "f")
    assert (row.created, row.duration_s) == (None, None)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("p-1,6000", "p-1,many", "f line 3, cpu_milli: is 'many'; expected a whole number"),
        (",460,", ",1460,", "f line 3, gpu_milli: is '1460'; expected a whole number up to 1000"),
        (",460,", ",0,", "f line 3, gpu_milli: is 0; expected 1 to 1000 thousandths of a GPU"),
        ("1,460,", "2,460,", "f line 3, gpu_milli: is 460 of 2 GPUs; expected 1000"),
        ("128,1,460", "128,99,460", "f line 3, num_gpu: is '99'; expected a whole number up to 64"),
        ("5,105,", "5,soon,", "f line 3, deletion_time: is 'soon'; expected seconds from 0 on"),
        ("5,105,", "5,nan,", "f line 3, deletion_time: is 'nan'; expected seconds from 0 on"),
        ("5,105,", "-5,105,", "f line 3, creation_time: is '-5'; expected seconds from 0 on"),
        ("p-1,", ",", "f line 3, name: is empty; expected a name of its own"),
        ("p-1,", "p-0,", "f line 3, name: p-0 stands twice; expected a name of its own"),
        ("5,105,", "5,105,1,2,3", "f line 3: has more than 11 fields; expected name,"),
        ("num_gpu", "gpus", "f line 1: has no column num_gpu; expected name,cpu_milli"),
    ],
)
def test_errors_name_file_line_and_field(old: str, new: str, words: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        openb.read_pods(PODS.replace(old, new, 1), "f")
    assert str(caught.value).startswith(words)


def test_a_short_line_lacks_a_number() -> None:
    with pytest.raises(errors.BadInput, match="f line 4, gpu: is ''"):
        openb.read_nodes(f"{NODES}n-2,1000\n", "f")


def test_every_gpu_is_published_whole_and_as_a_share_and_never_both_at_once() -> None:
    caches = openb.caches(openb.read_nodes(NODES, "f"))
    devices = [
        device.name
        for slice_ in caches.slices.values()
        for device in slice_.devices
        if "n-0" in slice_.name
    ]
    assert devices == ["gpu-0", "gpu-0-mps", "gpu-1", "gpu-1-mps"]
    assert all(isinstance(slice_, slices.Slice) for slice_ in caches.slices.values())
    simulated_scheduler = scheduler.SimulatedScheduler.from_caches(
        snapshots.DRIVER, caches, snapshots.DECIDING
    )
    maker = openb.Maker()
    shape = openb.Pod(1, 1, 1, 600, ("T4",))
    answers = []
    for number, pod in enumerate((shape, shape._replace(milli=1000), shape._replace(milli=400))):
        task = maker.task(f"p-{number}", pod)
        simulated_scheduler.add(task.claims)
        answers.append(simulated_scheduler.decide(task.pod))
    assert [type(answer) for answer in answers] == [
        scheduler.BoundPod,
        allocator_types.Unschedulable,
        scheduler.BoundPod,
    ]


def test_a_trace_is_replayed_in_its_own_time() -> None:
    simulated_scheduler = scheduler.SimulatedScheduler.from_caches(
        snapshots.DRIVER,
        openb.caches(openb.read_nodes(NODES, "f")),
        snapshots.DECIDING,
        every_pod=True,
    )
    maker = openb.Maker()
    rows = openb.read_pods(PODS, "f")
    tasks = [maker.task(row.name, row.pod, row.created or 0.0, row.duration_s) for row in rows]
    report = replay.Replay(simulated_scheduler).run(tasks)
    assert [fate.departed for fate in report.fates] == [90.0, 105.0, 8.0]
    assert [(usage_sample.at, usage_sample.used) for usage_sample in report.course] == [
        (0.0, 1000),
        (5.0, 1460),
        (7.0, 1460),
        (8.0, 1460),
        (90.0, 460),
        (105.0, 0),
    ]


def test_on_a_real_cluster_thousandths_are_percents_rounded_up() -> None:
    task = openb.Maker(whole=100).task("p", openb.Pod(1, 1, 1, 455, ()))
    (request,) = task.claims[0].spec.requests
    assert request.minimums["compute"].units == 46
