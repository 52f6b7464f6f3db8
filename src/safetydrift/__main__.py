"""``python -m safetydrift``."""

from safetydrift.cli import main

main()
