"""Positional arguments that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

SpecFile = Annotated[Path, Positional, arg(metavar="SPEC")]
NetworkFolder = Annotated[Path, Positional, arg(metavar="NET")]
OutFolder = Annotated[Path, Positional, arg(metavar="OUT")]
RunFolder = Annotated[Path, Positional, arg(metavar="RUN")]
OutFile = Annotated[Path, Positional, arg(metavar="OUT")]
QueryText = Annotated[str, Positional, arg(metavar="QUERY")]
NodeId = Annotated[str, Positional, arg(metavar="ID")]
