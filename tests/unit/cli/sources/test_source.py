"""The commands that look, against a recorded fleet: their text is compared exactly."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from driver.cli import output
from driver.cli.commands import claims, devices, idle, nodes, queues, top, who
from driver.cli.explain import text as explain_text
from driver.cli.lazy import app
from driver.scheduling.reports import catalog, read_model, selection
from tests.support import golden
from tests.support.scenarios import fleets

FLEET = fleets.a_reading()
DEMAND = fleets.a_reading(fleets.on_demand())
EXPLAINED = fleets.explained()
ANY = selection.ANY
RUN = CliRunner()
Ask = Callable[[], output.Answer]
ANSWERS: dict[str, Ask] = {
    "devices": lambda: devices.build_answer(FLEET, "", ANY),
    "devices-of-a-node": lambda: devices.build_answer(FLEET, "gpu-1", ANY),
    "devices-unhealthy": lambda: devices.build_answer(
        FLEET, "", selection.NodeFilter(health="unhealthy")
    ),
    "who": lambda: who.build_answer(FLEET, "", ""),
    "who-of-a-namespace": lambda: who.build_answer(FLEET, "", "nlp"),
    "who-of-a-gpu": lambda: who.build_answer(FLEET, f"gpu-1/{fleets.gpu('gpu-1', 2)}", ""),
    "claims": lambda: claims.build_answer(FLEET, ""),
    "claims-of-a-namespace": lambda: claims.build_answer(FLEET, "batch"),
    "nodes": lambda: nodes.build_answer(DEMAND),
    "nodes-without-a-document": lambda: nodes.build_answer(FLEET),
    "queues": lambda: queues.build_answer(FLEET),
    "idle": lambda: idle.build_answer(FLEET, "", 600.0),
    "top": lambda: top.build_answer(FLEET, "", busy=False),
    "top-busy": lambda: top.build_answer(FLEET, "gpu-1", busy=True),
    "explain-pod-waiting": lambda: explain_text.explain_pod(EXPLAINED, "nlp/big").text,
    "explain-pod-running": lambda: explain_text.explain_pod(FLEET, "vision/train").text,
    "explain-pod-gated": lambda: explain_text.explain_pod(FLEET, "batch/gated").text,
    "explain-pod-without-its-claim": lambda: explain_text.explain_pod(FLEET, "dev/lost").text,
    "explain-claim": lambda: explain_text.explain_claim(FLEET, "nlp/serve").text,
    "explain-claim-waiting": lambda: explain_text.explain_claim(FLEET, "nlp/big").text,
    "explain-node": lambda: explain_text.explain_node(FLEET, "gpu-1").text,
    "explain-node-cordoned": lambda: explain_text.explain_node(FLEET, "gpu-3").text,
}


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("fleet") / "fleet.yaml"
    path.write_text(yaml.safe_dump_all(fleets.on_demand()))
    return str(path)


def text_of(answer: output.Answer, *, wide: bool = False) -> str:
    return "".join(
        f"{part}\n" if isinstance(part, str) else output.text_of(part, wide=wide)
        for part in answer.parts
    )


@pytest.mark.parametrize("name", ANSWERS)
def test_people_are_told_in_these_words(name: str) -> None:
    golden.same(f"{name}.txt", text_of(ANSWERS[name]()))


@pytest.mark.parametrize("name", ["devices-of-a-node", "who", "claims", "nodes", "queues", "idle"])
def test_wide_says_more(name: str) -> None:
    golden.same(f"{name}-wide.txt", text_of(ANSWERS[name](), wide=True))


@pytest.mark.parametrize("name", ["devices-unhealthy", "who-of-a-gpu", "nodes", "queues", "idle"])
def test_programs_are_told_in_these_documents(name: str) -> None:
    golden.same(f"{name}.json", json.dumps(ANSWERS[name]().document, indent=2) + "\n")


FORMS = {
    "devices": "json",
    "who": "yaml",
    "claims -A": "wide",
    "nodes": "json",
    "queues": "table",
    "idle": "json",
    "top": "json",
    "explain pod nlp/rank": "yaml",
    "explain claim nlp/rank": "json",
}


@pytest.mark.parametrize("command", FORMS)
def test_every_command_prints_the_form_that_is_asked(command: str, dump: str) -> None:
    answer = RUN.invoke(app, [*command.split(), "--cluster", dump, "-o", FORMS[command]])
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.strip()
    if FORMS[command] == "json":
        json.loads(answer.stdout)
    if FORMS[command] == "yaml":
        yaml.safe_load(answer.stdout)


@pytest.mark.parametrize("command", [*FORMS, "explain node gpu-1"])
def test_help_has_an_example(command: str) -> None:
    words = [word for word in command.split() if "/" not in word and word not in {"-A", "gpu-1"}]
    message = RUN.invoke(app, [*words, "--help"]).output
    assert f"ration {' '.join(words)}" in message
    assert "Exit codes:" in message


REFUSED = {
    "devices nowhere": (2, "no node nowhere publishes GPUs of Ration"),
    "devices --mode fast": (2, "Invalid value for '--mode'"),
    "who gpu-1/gpu-9": (2, "node gpu-1 has no GPU gpu-9: `ration devices gpu-1` lists them"),
    "who nowhere": (2, "no node nowhere publishes GPUs of Ration"),
    "top nowhere": (2, "no node nowhere publishes GPUs of Ration"),
    "idle --for soon": (2, "--for"),
    "explain pod vision/nobody": (2, "there is no pod vision/nobody"),
    "explain claim vision/nobody": (2, "there is no ResourceClaim vision/nobody"),
    "explain node nowhere": (2, "no node nowhere publishes GPUs of Ration"),
}


@pytest.mark.parametrize("command", REFUSED)
def test_unknown_or_invalid_options_exit_2_with_one_line(command: str, dump: str) -> None:
    code, words = REFUSED[command]
    answer = RUN.invoke(app, [*command.split(), "--cluster", dump])
    assert answer.exit_code == code
    assert words in answer.stderr
    if "Invalid value" not in words:
        assert len(answer.stderr.splitlines()) == 1
    assert not answer.stdout


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("explain pod nlp/rank", 0),
        ("explain pod nlp/big", 1),
        ("explain claim nlp/rank", 0),
        ("explain claim nlp/big", 1),
        ("explain node gpu-2", 0),
        ("explain node gpu-1", 1),
        ("explain node gpu-3", 1),
    ],
)
def test_explain_ends_with_1_where_something_is_in_the_way(
    command: str, code: int, dump: str
) -> None:
    assert RUN.invoke(app, [*command.split(), "--cluster", dump]).exit_code == code


def test_a_dump_that_is_not_there_is_told() -> None:
    answer = RUN.invoke(app, ["devices", "--cluster", "/nowhere/fleet.yaml"])
    assert answer.exit_code == 2
    assert "/nowhere/fleet.yaml" in answer.stderr


def test_a_controller_that_is_not_reached_is_told() -> None:
    answer = RUN.invoke(app, ["devices", "--server", "http://127.0.0.1:1"])
    assert answer.exit_code == 3
    assert len(answer.stderr.splitlines()) == 1
    assert "the controller was not reached (http://127.0.0.1:1" in answer.stderr


def test_a_server_that_is_no_url_is_told() -> None:
    answer = RUN.invoke(app, ["devices", "--server", "ration"])
    assert answer.exit_code == 2
    assert "expected http://HOST:PORT or https://HOST:PORT" in answer.stderr


def test_a_kubeconfig_that_is_not_there_is_told(tmp_path: Path) -> None:
    answer = RUN.invoke(app, ["devices", "--kubeconfig", str(tmp_path / "none")])
    assert answer.exit_code == 2
    assert len(answer.stderr.splitlines()) == 1


def test_a_pod_that_uses_less_than_half_gets_a_suggestion() -> None:
    gib = 1 << 30
    assert idle.suggest_memory(40 * gib, 6 * gib) == 8 * gib
    assert idle.suggest_memory(40 * gib, 20 * gib) == 0
    assert idle.suggest_memory(40 * gib, None) == 0


def test_why_a_kind_of_node_rests_is_said_at_length() -> None:
    objects = DEMAND.cluster.objects
    assert objects.shapes is not None
    rests = dataclasses.replace(objects.shapes, paused={"h100-1": "is left alone for a while"})
    reports = catalog.Reports(
        read_model.ClusterModel(dataclasses.replace(objects, shapes=rests)), fleets.AT
    )
    shown = text_of(nodes.build_answer(reports), wide=True).splitlines()
    assert shown[2].split()[0] == "h100-1"
    assert shown[2].endswith("is left alone for a while")
    assert " yes " in shown[2]
