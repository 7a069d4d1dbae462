"""The command line's page, from the commands themselves."""

import enum
import inspect
import typing
from collections.abc import Iterator
from typing import Any

import typer.core
import typer.main

from driver.cli import lazy

_HEAD = """# The command line

`ration`, or `kubectl ration` where it lies on the PATH as `kubectl-ration`: the Python package
installs both. It finds the cluster as kubectl does, by `--kubeconfig`, `$KUBECONFIG`,
`~/.kube/config`, or the pod's service account.

## What commands have in common

| Option | Meaning |
|---|---|
| `-n`, `--namespace` | the namespace; default: that of the kubeconfig's context, else `default` |
| `-A`, `--all-namespaces` | all namespaces |
| `-o`, `--output` | `table`, `wide` (more columns), `json` or `yaml` |
| `-w`, `--watch` | print it again whenever it changes, until Ctrl-C; `json`: one document a line |

A command that shows things takes those that make sense for it. In a terminal a table wraps at its
width and has colours, unless `NO_COLOR` is set. In a pipe a row is a line, whatever its length;
with `COLUMNS` set it wraps there too.

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | the answer is no: something is wrong, is still held, does not fit |
| 2 | bad input or usage, or an object that is not there |
| 3 | the API server refused, is too old, or was not reached |

Where something fails, one line on standard error says what, where and what to do. A right that you
lack is named: `you may not list resourceclaims.resource.k8s.io -n team-a`.

## Completion

    ration --install-completion    # for the shell that you are in: bash, zsh, fish, PowerShell
    ration --show-completion       # the script alone, to put where you keep such

For `kubectl ration`, kubectl asks a program `kubectl_complete-ration` on the PATH:

    #!/bin/sh
    export COMP_WORDS="ration $*" COMP_CWORD=$# _RATION_COMPLETE=complete_bash
    ration && echo :4
"""


def page() -> str:
    """Every command, in the order of its name."""
    root = typer.main.get_command(lazy.app)
    return _HEAD + "".join(_sections(root, "ration"))


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer's own
    """All that do something, with their full names."""
    if isinstance(command, typer.core.TyperGroup):
        context: Any = None  # no group of ours looks at it
        for word in sorted(command.list_commands(context)):
            yield from commands(command.get_command(context, word), f"{name} {word}")
    else:
        yield name, command


def _sections(root: object, name: str) -> Iterator[str]:
    for called, one in commands(root, name):
        params = [param for param in one.params if not getattr(param, "hidden", False)]
        arguments = [_called(param) for param in params if _is_argument(param)]
        usage = " ".join([called, "[OPTIONS]", *arguments])
        rows = "\n".join(["| Option | Default | Meaning |", "|---|---|---|", *map(_row, params)])
        yield f"\n## {called}\n\n    {usage}\n\n{_help(one.help or '')}\n\n{rows}\n"


def _help(text: str) -> str:
    """Paragraphs, and what is indented as code."""
    found: list[str] = []
    for part in inspect.cleandoc(text).split("\n\n"):
        if not part.startswith("  "):
            found.append(" ".join(part.split()))
        elif found and found[-1].startswith("    "):
            found[-1] += f"\n    {part.strip()}"
        else:
            found.append(f"    {part.strip()}")
    return "\n\n".join(found)


def _is_argument(param: object) -> bool:
    return isinstance(param, typer.core.TyperArgument)


def _called(param: Any) -> str:  # noqa: ANN401 - typer's own
    return str(param.metavar or param.name.upper())


def _row(param: Any) -> str:  # noqa: ANN401 - as above
    names = [_called(param)] if _is_argument(param) else [*param.opts, *param.secondary_opts]
    shown = ", ".join(f"`{one}`" for one in names)
    told = str(param.help or "").replace("|", "\\|")
    choices = [*_choices(param.type_descriptor.annotation)]
    if choices and not any(one in told for one in choices):
        told = f"{told} One of {', '.join(f'`{one}`' for one in choices)}.".strip()
    return f"| {shown} | {_default(param)} | {told} |"


def _choices(annotation: Any) -> Iterator[str]:  # noqa: ANN401 - whatever a command declares
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        yield from (str(one.value) for one in annotation)
    elif typing.get_origin(annotation) is typing.Literal:
        yield from map(str, typing.get_args(annotation))
    else:
        for one in typing.get_args(annotation):
            yield from _choices(one)


def _default(param: Any) -> str:  # noqa: ANN401 - as above
    value = param.default
    if param.required:
        return "required"
    if callable(value) or value in (None, "", (), 0):
        return ""
    return "yes" if value is True else f"`{getattr(value, 'value', value)}`"
