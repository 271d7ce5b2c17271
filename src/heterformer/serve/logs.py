"""Logs as lines of JSON on standard error."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

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


def log_as_json(level: int = logging.INFO) -> None:
    """Send our own and uvicorn's messages to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for logger in (LOGGER, logging.getLogger("uvicorn")):
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level if logger is LOGGER else logging.WARNING)
