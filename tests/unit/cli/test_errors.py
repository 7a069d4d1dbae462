import pytest
import typer

from driver import errors
from driver.cli import errors as cli_errors

CASES: list[tuple[errors.ApiError | errors.BadInput, int, str]] = [
    (errors.BadInput("-f", "is no YAML", "a claim"), 2, "-f: is no YAML; expected a claim"),
    (
        errors.NotFound(404, "NotFound", 'nodes "gpu-9" not found'),
        2,
        'nodes "gpu-9" not found: look at the name, and the namespace (-n)',
    ),
    (
        errors.NotFound(404, "NotFound", "the server could not find the requested resource"),
        3,
        "the API server does not serve what was asked: `ration doctor` says what is missing",
    ),
    (
        errors.Forbidden(
            403,
            "Forbidden",
            'resourceclaims.resource.k8s.io is forbidden: User "ann" cannot list resource '
            '"resourceclaims" in API group "resource.k8s.io" in the namespace "team-a"',
        ),
        3,
        (
            "you may not list resourceclaims.resource.k8s.io -n team-a: ask for the right "
            "(kubectl auth can-i list resourceclaims.resource.k8s.io -n team-a)"
        ),
    ),
    (
        errors.Forbidden(
            403,
            "Forbidden",
            'nodes "n" is forbidden: User "ann" cannot patch resource "nodes" in API group "" '
            "at the cluster scope",
        ),
        3,
        "you may not patch nodes: ask for the right (kubectl auth can-i patch nodes)",
    ),
    (
        errors.Forbidden(
            403,
            "Forbidden",
            'User "a" cannot create resource "pods/eviction" in API group "" in the namespace "a"',
        ),
        3,
        (
            "you may not create pods/eviction -n a: ask for the right "
            "(kubectl auth can-i create pods --subresource=eviction -n a)"
        ),
    ),
    (
        errors.Forbidden(403, "Invalid", "a policy says no"),
        3,
        "API server: 403 Invalid: a policy says no",
    ),
    (
        errors.Unauthorized(401, "Unauthorized", "Unauthorized"),
        3,
        (
            "the API server does not know you (Unauthorized): log in again, or name another "
            "kubeconfig with --kubeconfig"
        ),
    ),
    (
        errors.Unreachable(0, "Unreachable", "GET /version: refused\n  by peer"),
        3,
        (
            "the API server was not reached (GET /version: refused by peer): is it up, and is it "
            "the kubeconfig that you mean (--kubeconfig)?"
        ),
    ),
]


@pytest.mark.parametrize(("error", "code", "line"), CASES)
def test_each_failure_is_one_line_and_its_code(
    error: errors.ApiError | errors.BadInput,
    code: int,
    line: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(typer.Exit) as ended, cli_errors.exit_on_error():
        raise error
    assert ended.value.exit_code == code
    assert capsys.readouterr().err == f"{line}\n"
