"""The options that all read commands share, and the source that they name.

A command takes `ReadOptions` first; `command` gives it these options beside its own.
"""

import contextlib
import enum
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, NamedTuple

import typer

from driver import clock, errors, names
from driver.cli import cluster
from driver.cli import errors as cli_errors
from driver.cli import output as out
from driver.cli import watch as cli_watch
from driver.cli.sources import source
from driver.scheduling.reports import model, selection

_NOT_FOUND = 404
_LEASE = "ration-controller"


class SourceKind(enum.StrEnum):
    """Values of `--source`."""

    AUTO = "auto"
    CONTROLLER = "controller"
    CLUSTER = "cluster"


Dump = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Read a dump (file, folder, or -) instead of the live cluster.",
        show_default=False,
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        help="URL of the controller's web page. Default: $RATION_SERVER, with the token "
        "$RATION_TOKEN.",
        show_default=False,
    ),
]
Whence = Annotated[
    SourceKind,
    typer.Option(
        "--source",
        help="Data source. controller: its JSON API, through the API server (pods/portforward); "
        "cluster: the Kubernetes objects; auto: the controller, else the cluster.",
    ),
]
RationNamespace = Annotated[str, typer.Option(help="Namespace in which Ration is installed.")]
Port = Annotated[int, typer.Option(help="Port of the web page in the controller's pod.")]
DriverName = Annotated[str, typer.Option(help="Name of the DRA driver, as installed.")]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The shared options, in the order of the command line, which is made of these fields."""

    namespace: cluster.Namespace = None
    all_namespaces: cluster.AllNamespaces = False
    output: out.Output = out.Format.TABLE
    watch: cli_watch.Watch = False
    kubeconfig: cluster.Kubeconfig = None
    dump: Dump = None
    server: Server = None
    whence: Whence = SourceKind.AUTO
    ration_namespace: RationNamespace = "ration-system"
    page_port: Port = 8081
    driver_name: DriverName = names.DRIVER

    def watched(self) -> "ReadOptions":
        """The same, with --watch."""
        return replace(self, watch=True)

    def in_namespace(self) -> str:
        """The namespace that is meant, as kubectl means it; "" for all."""
        if self.dump is not None and self.namespace is None:
            return ""
        result = cluster.resolve_namespace(
            self.namespace, self.kubeconfig, everywhere=self.all_namespaces
        )
        return result or ""

    def namespace_of_named(self) -> str:
        """The namespace that was named; "" for all where none was."""
        return "" if self.all_namespaces else self.namespace or ""

    def show(
        self,
        needed: Sequence[str],
        answer: Callable[[source.Source], out.Answer],
        *,
        beside: Sequence[str] | None = None,
        node: str = "",
        free_gpus: bool = False,
    ) -> None:
        """Print the answer of the documents; without the `needed` kinds there are none.

        Where objects are read, only those `beside` them are (None: all), and of only one `node`.
        With `free_gpus` the answer calls GPUs free. What was not seen is below an answer that is
        watched.
        """
        reads = frozenset() if beside is None else frozenset((*needed, *beside))
        with cli_errors.exit_on_error():
            opened = OpenSource(self, Needs(frozenset(needed), reads, node, free_gpus))

            def current() -> out.Answer:
                shown = answer(opened.read())
                notes = opened.notes if self.watch else ()
                return replace(shown, parts=(*shown.parts, *notes))

            cli_watch.print_answers(current, self.output, watch=self.watch)
            for note in () if self.watch and self.output.is_for_people else opened.notes:
                typer.echo(note, err=True)


class Needs(NamedTuple):
    """Kinds of objects that a command needs, which it reads, and of which node.

    With `free_gpus` it calls GPUs free.
    """

    needed: frozenset[str]
    reads: frozenset[str] = frozenset()
    node: str = ""
    free_gpus: bool = False


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Tells on a terminal what is being done, and takes it away again."""
    shown = sys.stderr.isatty()

    def show_progress(text: str) -> None:
        if shown:
            sys.stderr.write(f"\r\x1b[K{text} ...")
            sys.stderr.flush()

    try:
        yield show_progress
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class OpenSource:
    """The source that the options name, asked anew at every call."""

    def __init__(self, read_options: ReadOptions, wants: Needs) -> None:
        self._asked = read_options
        self._wants = wants
        self._remote = self._controller()
        self.missing: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines on what was not seen, for people."""
        return tuple(f"not seen: {text}" for text in self.missing)

    def read(self) -> source.Source:
        """Read the current documents. Raises ApiError, BadInput."""
        if self._remote is not None:
            return self._remote
        from driver.cli.sources import local  # noqa: PLC0415 - the selectors' compiler is slow

        read_options, time = self._asked, clock.SystemClock()
        if read_options.dump is not None:
            free_gpus = self._wants.free_gpus
            result = local.read_file(
                read_options.dump, read_options.driver_name, time, free_gpus=free_gpus
            )
        else:
            kube = cluster.connect_supported(read_options.kubeconfig)
            wants = self._wants
            scope = local.ReadScope(
                wants.needed,
                read_options.namespace_of_named(),
                wants.reads,
                wants.node,
                read_options.ration_namespace,
                wants.free_gpus,
            )
            with progress() as tell:
                result = local.read_cluster(kube, read_options.driver_name, scope, time, tell)
        self.missing = result.cluster.objects.missing
        return result

    def _controller(self) -> source.Source | None:
        """The controller's API, where it is asked for or can be had. Raises ApiError."""
        read_options = self._asked
        url = read_options.server or os.environ.get("RATION_SERVER", "")
        if read_options.dump is not None or read_options.whence is SourceKind.CLUSTER:
            return None
        if url:
            from driver.cli.sources import http as source_http  # noqa: PLC0415 - as above
            from driver.cli.sources import remote  # noqa: PLC0415 - as above

            return remote.Remote(
                source_http.PageClient(url, os.environ.get("RATION_TOKEN", "")).get
            )
        try:
            return self._through_the_server()
        except errors.ApiError as error:
            if read_options.whence is SourceKind.CONTROLLER:
                raise errors.Unreachable(
                    0, cli_errors.CONTROLLER, cli_errors.error_line(error)
                ) from error
            return None

    def _through_the_server(self) -> source.Source:
        """Through the API server to the pod that leads."""
        from driver.cli.sources import remote  # noqa: PLC0415 - as above
        from driver.kube import gvr  # noqa: PLC0415
        from driver.kube.http import port_forward  # noqa: PLC0415

        read_options = self._asked
        kube = cluster.connect(read_options.kubeconfig).with_timeout(4.0)
        result = kube.get(gvr.LEASES, _LEASE, read_options.ration_namespace)
        # The pod's name, and what is new in every process.
        holder = str(result.get("spec", {}).get("holderIdentity") or "").rpartition("-")[0]
        if not holder:
            raise errors.Unreachable(0, cli_errors.CONTROLLER, "no controller leads")
        config = cluster.resolve_kubeconfig(read_options.kubeconfig)
        through_the_server = remote.Remote(
            port_forward.Tunnel(
                config, read_options.ration_namespace, holder, read_options.page_port
            ).get
        )
        through_the_server.fleet()
        return through_the_server


def command(run: Callable[..., None]) -> Callable[..., None]:
    """Return a command of the options of `ReadOptions` and its own: `run(options, **own)`."""
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=ReadOptions.__annotations__[field.name],
        )
        for field in fields(ReadOptions)
    ]
    own = [*inspect.signature(run).parameters.values()][1:]
    current = {field.name for field in shared}

    @functools.wraps(run)
    def wrapper(**values: Any) -> None:  # noqa: ANN401 - as typer reads them
        read_options = ReadOptions(**{key: values.pop(key) for key in [*values] if key in current})
        run(read_options, **values)

    wrapper.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {field.name: field.annotation for field in [*own, *shared]}
    return wrapper


def matching_nodes(
    reports: source.Source, name: str, node_filter: selection.NodeFilter = selection.ANY
) -> tuple[model.Node, ...]:
    """The node of a name, or with "" those that are wanted. Raises NotFound."""
    if not name:
        return reports.nodes(node_filter=node_filter).items
    node = reports.node(name)
    if node is None:
        raise not_found(f"no node {name} publishes GPUs of Ration")
    return (node,)


def not_found(message: str) -> errors.NotFound:
    """Return the error for a missing object."""
    return errors.NotFound(_NOT_FOUND, "NotFound", message)
