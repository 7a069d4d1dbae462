"""`python -m simulator`: make, run, look at and change a simulated machine."""

import json
import signal
import threading
from enum import StrEnum
from typing import Annotated

import typer

from simulator import (
    builder,
    codes,
    compiler,
    control,
    fault_commands,
    machine,
    node,
    profile,
    store,
)

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
app.add_typer(fault_commands.app, name="fault")


class Output(StrEnum):
    """How `show` prints."""

    TABLE = "table"
    JSON = "json"


@app.command()
def create(
    directory: fault_commands.Directory,
    machine_name: Annotated[
        str, typer.Option("--machine", help="A name that `machines` lists, or a YAML file.")
    ],
    seed: Annotated[str, typer.Option(help="Decides UUIDs and serials: the node's name.")],
) -> None:
    """Make a machine: its state, its driver root and its host root."""
    with fault_commands.refusals_in_words():
        compiler.programs()
        made = store.create(directory, machine_name, seed)
        builder.build(directory, made)
    print(f"{directory}: {len(made.gpus)} GPUs, {made.profile.description}")


@app.command()
def run(directory: fault_commands.Directory) -> None:
    """Serve NVML until SIGTERM or SIGINT; prints one line when ready."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with fault_commands.refusals_in_words(), store.locked(directory):
        running = node.Node(directory)
        running.start()
        try:
            print(f"ready: {len(running.machine.gpus)} GPUs in {directory}", flush=True)
            stop.wait()
        finally:
            running.stop()
    print("stopped", flush=True)


@app.command()
def show(
    directory: fault_commands.Directory,
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.TABLE,
) -> None:
    """Print the machine as it is now."""
    with fault_commands.refusals_in_words():
        shown = store.load(directory)
    gpus = list(machine.summary(shown))
    if output is Output.JSON:
        print(json.dumps({"seed": shown.seed, "bootID": shown.boot_id, "gpus": gpus}, indent=2))
        return
    rows = [list(gpus[0]), *([str(value) for value in gpu.values()] for gpu in gpus)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


@app.command("set")
def set_(
    directory: fault_commands.Directory,
    gpu: fault_commands.OneGpu,
    readings: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...")],
) -> None:
    """Set readings: power_mw, celsius, gpu_percent, memory_percent, sm_mhz, memory_mhz."""
    with fault_commands.refusals_in_words():
        for reading in readings:
            name, _, value = reading.partition("=")
            control.send(directory, "set_reading", gpu, name, value)


@app.command()
def process(
    directory: fault_commands.Directory,
    pid: int,
    gpu: fault_commands.OneGpu,
    memory_mib: Annotated[int, typer.Option(min=0, help="0 ends the process.")],
    gi: fault_commands.GpuInstance = codes.WHOLE_GPU,
    ci: fault_commands.ComputeInstance = codes.WHOLE_GPU,
) -> None:
    """Let a compute process appear on a GPU or a MIG device, grow or end."""
    with fault_commands.refusals_in_words():
        ids = (str(number) for number in (pid, memory_mib << 20, gi, ci))
        control.send(directory, "process", gpu, *ids)


@app.command()
def work(
    directory: fault_commands.Directory,
    pid: int,
    gpu: fault_commands.OneGpu,
    percent: Annotated[int, typer.Option(min=0, max=100, help="0: it does nothing.")],
) -> None:
    """Let a compute process keep so much of its GPU's multiprocessors busy."""
    with fault_commands.refusals_in_words():
        control.send(directory, "work", gpu, str(pid), str(percent))


@app.command()
def clear(directory: fault_commands.Directory, gpu: fault_commands.OneGpu) -> None:
    """Reset a GPU: lost ones are back, pending modes and repairs are done, processes are gone."""
    with fault_commands.refusals_in_words():
        control.send(directory, "restore", gpu)


@app.command()
def machines() -> None:
    """List the machines that can be made."""
    for name in profile.names():
        print(f"{name}  {profile.load(name).description}")


if __name__ == "__main__":
    app()
