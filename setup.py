"""What pyproject.toml cannot say: the package index shows the README, where its links need a host."""

import re
from pathlib import Path

from setuptools import setup

FILES = "https://github.com/heterformer/heterformer/blob/main/"
IMAGES = "https://raw.githubusercontent.com/heterformer/heterformer/main/"
RELATIVE = re.compile(r"(!?)(\[[^\]]*\]\()(?!https?:|#)")

readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
setup(
    long_description=RELATIVE.sub(lambda m: f"{m[1]}{m[2]}{IMAGES if m[1] else FILES}", readme),
    long_description_content_type="text/markdown",
)
