"""The metrics of a run as TensorBoard curves, in ``RUN/tensorboard``."""

from __future__ import annotations

import io
import os
import socket
import time
from collections.abc import Mapping
from typing import Any

from heterformer.files import writing
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run

VERSION = "brain.Event:2"  # of the format; the first record says so


class TensorBoard:
    """Writes each number as a scalar, at once.

    TensorBoard's own writer leaves that to a thread, in which a full disk ends with a traceback.
    """

    def __init__(self, run: Run, options: TrainingOptions) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        folder = run.path / "tensorboard"
        folder.mkdir(parents=True, exist_ok=True)
        now = time.time_ns()  # so that a resumed run has a file of its own, after the others by name
        name = f"events.out.tfevents.{now // 10**9}.{socket.gethostname()}.{os.getpid()}.{now % 10**9}"
        self.path = folder / name
        self._write(Event(wall_time=time.time(), file_version=VERSION))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        now = time.time()
        values = [Summary.Value(tag=name, simple_value=value) for name, value in numbers.items()]
        self._write(*(Event(wall_time=now, step=step, summary=Summary(value=[value])) for value in values))

    def _write(self, *events: Any) -> None:
        """Append all of the records or none."""
        from tensorboard.summary.writer.record_writer import RecordWriter

        records = io.BytesIO()
        for event in events:
            RecordWriter(records).write(event.SerializeToString())
        with writing(self.path), self.path.open("ab", buffering=0) as file:
            start, left = file.tell(), records.getbuffer()
            try:
                while left:
                    left = left[file.write(left) :]
            except OSError:
                file.truncate(start)
                raise

    def close(self) -> None:
        """Nothing is held back."""
