"""Bytes in, bytes out: a review read, its verdict, counted, and written."""

from collections.abc import Callable

import structlog

from driver import clock, errors
from driver.webhook import admission_review, metrics

_log = structlog.get_logger(__name__)
Decide = Callable[[admission_review.ReviewRequest], admission_review.ReviewResponse]
_OK, _BAD = 200, 400
_TOO_DEEP = admission_review.ReviewResponse(
    allowed=False, message="is nested too deeply", code=_BAD
)


class ReviewHandler:
    """A `server.Handler` for one webhook: `validate`, `mutate` or `gate`.

    `patched` is the verdict on an object that it changes.

    What fails in us is left to the server, which answers 500: then `failurePolicy` decides.
    """

    def __init__(
        self,
        webhook: str,
        decide: Decide,
        counted: metrics.Metrics,
        time: clock.Clock,
        patched: str = "converted",
    ) -> None:
        self._webhook = webhook
        self._decide = decide
        self._metrics = counted
        self._clock = time
        self._patched = patched

    def __call__(self, body: bytes) -> tuple[int, bytes]:
        """Answer one review."""
        began, verdict = self._clock.monotonic(), "failed"
        try:
            request = admission_review.read(body)
            answer = self._answer(request)
            verdict = self._verdict(answer)
        except errors.BadInput as problem:
            verdict = "unreadable"
            return _BAD, f"{problem}\n".encode(errors="replace")
        else:
            self._tell(request, answer)
            return _OK, admission_review.render(request, answer)
        finally:
            self._metrics.observe_review(self._webhook, verdict)
            self._metrics.seconds.observe(self._clock.monotonic() - began)

    def _answer(self, request: admission_review.ReviewRequest) -> admission_review.ReviewResponse:
        try:
            return self._decide(request)
        except RecursionError:  # of what is nested as deep as the parser just about takes
            return _TOO_DEEP

    def _tell(
        self, request: admission_review.ReviewRequest, answer: admission_review.ReviewResponse
    ) -> None:
        if not answer.allowed or answer.patch:
            _log.info(
                "review answered",
                webhook=self._webhook,
                kind=request.kind.kind,
                object=f"{request.namespace}/{request.name}",
                verdict=self._verdict(answer),
                message=answer.message,
                dry_run=request.dry_run,
            )

    def _verdict(self, answer: admission_review.ReviewResponse) -> str:
        if not answer.allowed:
            return "refused"
        if answer.patch:
            return self._patched
        return "warned" if answer.warnings else "allowed"
