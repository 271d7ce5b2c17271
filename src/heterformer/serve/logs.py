"""Logs as lines of JSON on standard error."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import TextIO

LOGGER = logging.getLogger("heterformer.serve")


class JsonFormatter(logging.Formatter):
    """One object per line: time, level, message, and what the record carries as ``fields``."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        values = {"time": time, "level": record.levelname.lower(), "message": record.getMessage()}
        values |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            values["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
        return json.dumps(values, ensure_ascii=False, default=str)


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to what standard error is at that time."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        """``StreamHandler`` wants to keep one."""


def log_as_json(level: int = logging.INFO) -> None:
    """Send our own messages to standard error, and the warnings of all libraries."""
    handler = StderrHandler()
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]  # packages that find one add none of another form
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(level)
