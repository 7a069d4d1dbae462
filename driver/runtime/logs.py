"""Logs: one JSON object a line, ours and those of the libraries alike.

The event is a constant lower-case phrase; values are keys (`claim_uid`, `node`, `duration_s`).
"""

import logging
import sys
from typing import TextIO

import structlog

LEVELS = ("debug", "info", "warning", "error")


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Write records of `level` and above to `stream` (standard error); called once, early.

    Raises ValueError for a level not in LEVELS.
    """
    if level not in LEVELS:
        raise ValueError(f"log level is {level!r}; expected one of {', '.join(LEVELS)}")
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(sort_keys=True, default=str),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # urllib3 reports each dropped connection; our loops report the effect.
    logging.getLogger("urllib3").setLevel(max(root.level, logging.ERROR))
