"""Measure a guard on everyday work, attack commands, unasked acts and adaptive injections; see README.md."""

from __future__ import annotations

import sys
from pathlib import Path


def start() -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from everyday.command import main  # noqa: PLC0415  # the program finds its package beside itself

    return main()


if __name__ == "__main__":
    sys.exit(start())
