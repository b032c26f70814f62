"""Generates the messages before the package is built; everything else is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).resolve().parent))
from generate import generate  # noqa: E402

generate()
setup()
