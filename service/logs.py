"""The log: one JSON object a line on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

_USUAL = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}


_ENCODER = json.JSONEncoder(default=str)


class JsonLines(logging.Formatter):
    """Time, level, logger, message, whatever ``extra`` held, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update({key: value for key, value in record.__dict__.items() if key not in _USUAL})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _ENCODER.encode(line)


def set_up(level: str) -> None:
    """Send every logger's lines to standard error in this form; uvicorn's own access lines are left out."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    # What the lines do not hold is not looked up for each of them: the caller's place, threads, processes.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # as the documentation of the logging module has it
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in ("httpx", "httpcore", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
