"""One call of `nvidia-smi`: arguments in, output and status out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from simulator import codes
from simulator.smi import (
    arguments,
    fields,
    links,
    listing,
    mig,
    refusal,
    selection,
    setting,
    summary,
)
from simulator.smi.arguments import Option, Takes

_OPTIONS = (
    arguments.ID,
    Option("help", ("-h", "--help")),
    Option("list", ("-L", "--list-gpus")),
    Option("query", ("-q", "--query")),
    Option("xml", ("-x", "--xml-format")),
    Option("columns", ("--query-gpu",), Takes.VALUE),
    Option("processes", ("--query-compute-apps",), Takes.VALUE),
    Option("fields", ("--help-query-gpu",)),
    Option("version", ("--version",)),
    Option("format", ("--format",), Takes.VALUE),
    Option("compute", ("-c", "--compute-mode"), Takes.VALUE),
    Option("persistence", ("-pm", "--persistence-mode"), Takes.VALUE),
    Option("mig", ("-mig", "--multi-instance-gpu"), Takes.VALUE),
    Option("reset", ("-r", "--gpu-reset")),
)
_POLICY_OPTIONS = (
    arguments.ID,
    Option("list", ("-l", "--list")),
    Option("timeslice", ("--set-timeslice",), Takes.VALUE),
)
_SUBCOMMANDS = {"mig", "compute-policy", "topo", "nvlink"}
_HELP = """\
This nvidia-smi is simulated. It knows:
  nvidia-smi [-i ID,...]
  nvidia-smi [-i ID,...] -L | -q [-x] | --query-gpu=FIELD,... --format=csv[,noheader][,nounits]
  nvidia-smi [-i ID,...] -c MODE | -pm 0|1 | -mig 0|1 | --gpu-reset
  nvidia-smi [-i ID,...] --query-compute-apps=FIELD,... --format=csv[,noheader][,nounits]
  nvidia-smi --help-query-gpu | --version
  nvidia-smi topo -m
  nvidia-smi nvlink [-i ID,...] -s | -c
  nvidia-smi compute-policy [-i ID,...] -l | --set-timeslice=0|1|2|3
  nvidia-smi mig [-i ID,...] [-gi ID,...] [-ci ID,...] -lgip | -lgipp | -lgi | -cgi PROFILE,... [-C]
             | -dgi | -lcip | -lci | -cci [PROFILE,...] | -dci
An ID is a number, a UUID or a PCI address.
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the program prints on standard output, and the status it ends with."""

    status: int
    text: str


def run(nvml: selection.Nvml, argv: Sequence[str], now: str) -> Answer:
    """Carry out the command line without the program's name; `now` is the time in words."""
    said: list[str] = []
    try:
        said.extend(_output(nvml, argv, now))
    except refusal.RefusedError as e:
        return Answer(e.status, "".join((*said, e.text)))
    except codes.NvmlError as e:
        return Answer(min(e.code, 255), "".join((*said, f"{refusal.words(e.code)}\n")))
    return Answer(0, "".join(said))


def _output(nvml: selection.Nvml, argv: Sequence[str], now: str) -> Iterator[str]:
    command, rest, ids = _split(argv)
    if command == "mig":
        return mig.run(nvml, rest, ids)
    if command == "compute-policy":
        return _policy(nvml, rest, ids)
    if command == "topo":
        return links.topo(nvml, rest)
    if command == "nvlink":
        return links.nvlink(nvml, rest, ids)
    return _plain(nvml, arguments.parse(rest, _OPTIONS), now)


def _split(argv: Sequence[str]) -> tuple[str, Sequence[str], str | None]:
    """The subcommand, what follows it, and the `-i` that may stand before it."""
    for at, word in enumerate(argv):
        if word in _SUBCOMMANDS:
            before = arguments.parse(argv[:at], (arguments.ID,))
            return word, argv[at + 1 :], before.get("id")
    return "", argv, None


def _policy(nvml: selection.Nvml, argv: Sequence[str], ids: str | None) -> Iterator[str]:
    given = arguments.parse(argv, _POLICY_OPTIONS)
    ids = given.get("id", ids)
    if "timeslice" in given:
        return setting.set_timeslice(nvml, ids, given["timeslice"])
    if "list" in given:
        return setting.list_policies(nvml, ids)
    raise refusal.usage("compute-policy takes -l or --set-timeslice.")


def _plain(nvml: selection.Nvml, given: dict[str, str], now: str) -> Iterator[str]:
    ids = given.get("id")
    if "list" in given:
        return listing.list_gpus(nvml, ids)
    if "query" in given:
        return listing.query(nvml, ids, now, as_xml="xml" in given)
    for name, show in _TABLES.items():
        if name in given:
            return show(nvml, ids, given[name], given.get("format", ""), now)
    for name, change in _CHANGES.items():
        if name in given:
            return change(nvml, ids, given[name])
    for name, answer in _WORDS.items():
        if name in given:
            return answer(nvml)
    if given.keys() <= {"id"}:
        return summary.of(nvml, ids, now)
    raise refusal.usage("Invalid combination of input arguments.")


def _version(nvml: selection.Nvml) -> Iterator[str]:
    """As from 560 on."""
    driver, cuda = nvml.system_get_driver_version(), nvml.system_get_cuda_driver_version()
    yield f"NVIDIA-SMI version  : {driver}\n"
    yield f"NVML version        : {driver.rpartition('.')[0]}\n"
    yield f"DRIVER version      : {driver}\n"
    yield f"CUDA Version        : {cuda // 1000}.{cuda % 1000 // 10}\n"


_WORDS: dict[str, Callable[[selection.Nvml], Iterator[str]]] = {
    "help": lambda _: iter([_HELP]),
    "fields": lambda _: fields.help_text(),
    "version": _version,
}
Show = Callable[[selection.Nvml, str | None, str, str, str], Iterator[str]]
_TABLES: dict[str, Show] = {"columns": listing.table, "processes": listing.processes}
_CHANGES: dict[str, Callable[[selection.Nvml, str | None, str], Iterator[str]]] = {
    "compute": setting.compute_mode,
    "persistence": setting.persistence,
    "mig": setting.mig_mode,
    "reset": lambda nvml, ids, _: setting.reset(nvml, ids),
}
