"""`ration generate claim`: what is written, and what is refused."""

import json

import pytest
import yaml
from typer.testing import CliRunner, Result

from driver.cli.lazy import app
from driver.cli.validate import checks as validate_checks
from tests.support import golden

ACCEPTED = (
    "--whole 1",
    "--whole 8 --same nvlink --product H100 --template --pod",
    "--whole 2 --same numa",
    "--mig 1g.10gb --pod",
    "--mig 1g.10gb+me --count 2 --same pcie",
    "--mps --memory 20Gi --compute 25 --template --pod --name inference -n team-a",
    "--time-slice --memory 4Gi --product A100",
    "--memory 20Gi --compute 40",
    "--slice --isolation hardware --memory 19Gi",
    "--isolation none",
)
REFUSED = (
    "",
    "--whole 1 --mps",
    "--whole 2 --memory 20Gi",
    "--mig 1g.10gb --compute 25",
    "--mig big",
    "--whole 2 --count 2",
    "--mps --isolation limits",
    "--whole 1 --same numa",
    "--mps --count 2 --same nvlink",
    "--mps --count 2 --pod",
    "--memory much",
    "--memory 0",
    "--whole 1 --name Not_a_name",
)


def generate(flags: str) -> Result:
    return CliRunner().invoke(app, ["generate", "claim", *flags.split()])


def test_the_written_file_equals_the_golden_file() -> None:
    shown = "".join(f"# {flags}\n{generate(flags).output}" for flags in ACCEPTED)
    golden.same("generate-claim.yaml", shown)


@pytest.mark.parametrize("flags", ACCEPTED)
def test_the_written_manifest_is_valid(flags: str) -> None:
    answer = generate(flags)
    assert answer.exit_code == 0
    sources = [validate_checks.Source("-", entry) for entry in yaml.safe_load_all(answer.stdout)]
    verdict = validate_checks.check_sources(sources)
    assert (verdict.problems, verdict.checked) == ((), len(sources))


def test_contradictions_are_refused_in_one_line_each() -> None:
    answers = {flags: generate(flags) for flags in REFUSED}
    assert {answer.exit_code for answer in answers.values()} == {2}
    assert {answer.output.count("\n") for answer in answers.values()} == {1}
    shown = "".join(f"$ ration generate claim {k}\n{v.output}" for k, v in answers.items())
    golden.same("generate-claim-refused.txt", shown)


def test_another_driver_name_stands_where_the_driver_does() -> None:
    answer = generate("--whole 1 --product H100 --isolation none --driver-name gpu.example.com")
    assert answer.exit_code == 2
    answer = generate("--product H100 --isolation none --driver-name gpu.example.com")
    assert "gpu.ration.dev" not in answer.output


def test_json_is_one_document() -> None:
    assert json.loads(generate("--whole 1 -o json").output)["kind"] == "ResourceClaim"
    listed = json.loads(generate("--whole 1 --pod -o json").output)
    assert [item["kind"] for item in listed["items"]] == ["ResourceClaim", "Pod"]
