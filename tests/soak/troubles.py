"""Troubles, one after the other, each over within seconds."""

import threading

from driver import clock
from simulator import codes, control
from tests.fakes import battering
from tests.soak import draw, ledger, rush, servers

AWAY_S = 3.0
SLOW_MS = "40"
REFUSALS = "3"
HARMLESS_XID = "31"


class Troubles:
    """`run` is a thread's target."""

    def __init__(
        self,
        node: battering.Battered,
        api: servers.Server,
        book: ledger.Ledger,
        breaks: draw.Breaks,
        time: clock.Clock,
    ) -> None:
        self._node = node
        self._api = api
        self._book = book
        self._breaks = breaks
        self._time = time
        self._acts = {
            draw.Trouble.PLUGIN_KILLED: self._kill_plugin,
            draw.Trouble.SUPERVISOR_KILLED: self._kill_supervisor,
            draw.Trouble.MPS_DIED: self._end_mps,
            draw.Trouble.GPU_LOST: self._lose,
            draw.Trouble.REFUSED: self._refuse,
            draw.Trouble.SLOW: self._slow,
            draw.Trouble.XID: self._xid,
            draw.Trouble.API_DOWN: self._api_down,
            draw.Trouble.API_DROPPED: self._api_dropped,
            draw.Trouble.KUBELET_RESTARTED: self._restart_kubelet,
            draw.Trouble.RUSH: self._rush,
        }

    def run(self, every_s: float, stop: threading.Event) -> None:
        """One after so long, again and again; the one under way is ended."""
        while not self._time.wait(stop, every_s):
            result = self._breaks.draw(killing=self._book.killing)
            try:
                self._acts[result.trouble](str(result.gpu))
            except Exception as error:  # noqa: BLE001 - any of them ends the run, and is told
                self._book.breach(f"{result.trouble}: {type(error).__name__}: {error}")
                return
            self._book.trouble(result.trouble)

    def _kill_plugin(self, _gpu: str) -> None:
        self._node.kill()
        self._node.start()

    def _kill_supervisor(self, _gpu: str) -> None:
        self._node.supervisors[-1].kill()
        self._node.supervisors[-1].wait(AWAY_S)
        self._node.supervise()

    def _end_mps(self, gpu: str) -> None:
        try:
            self._send("mps_death", gpu, "0")
        except control.ControlError:
            self._book.trouble("MPS daemon to die, but none was there")

    def _lose(self, gpu: str) -> None:
        self._send("lose", gpu)
        self._wait()
        self._send("restore", gpu)

    def _refuse(self, gpu: str) -> None:
        self._send("refuse", gpu, str(int(codes.Return.IN_USE)), REFUSALS)

    def _slow(self, _gpu: str) -> None:
        self._send("slow", "*", SLOW_MS)
        self._wait()
        self._send("slow", "*", "0")

    def _xid(self, gpu: str) -> None:
        whole = str(int(codes.WHOLE_GPU))
        self._send("xid", gpu, HARMLESS_XID, whole, whole)

    def _api_down(self, _gpu: str) -> None:
        self._api.breaks.down()
        self._wait()
        self._api.breaks.up()

    def _api_dropped(self, _gpu: str) -> None:
        self._api.breaks.drop_connections()

    def _restart_kubelet(self, _gpu: str) -> None:
        self._node.restart_kubelet()

    def _rush(self, _gpu: str) -> None:
        """Announce claims late that the API server lists although nobody made them."""
        with self._api.late():
            calls = rush.start(self._node.plugin)
            self._wait()  # until the last call is in
        for call in calls:
            call.result()

    def _send(self, call: str, *words: str) -> None:
        control.send(self._node.base, call, *words)

    def _wait(self) -> None:
        self._time.wait(threading.Event(), AWAY_S)
