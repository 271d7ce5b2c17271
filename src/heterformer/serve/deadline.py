"""How long a request may still wait."""

from __future__ import annotations

import time

from heterformer.serve.errors import UnavailableError


class Deadline:
    """The end of a request's time, from when it came."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """The seconds that are left; it is an error if there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.passed()
        return left

    def passed(self) -> UnavailableError:
        return UnavailableError(f"the request was not answered within {self.seconds:g} seconds.")
