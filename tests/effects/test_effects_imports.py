"""What runs beside an agent must not pay for heavy imports."""

import subprocess
import sys
from pathlib import Path

import safetydrift

SOURCE = str(Path(safetydrift.__file__).parents[1])
HEAVY = ("numpy", "msgspec", "typing", "dataclasses", "asyncio", "shlex", "tomllib", "json", "hashlib")


def modules_after(statement):
    program = f"import sys; sys.path.insert(0, {SOURCE!r}); {statement}; print(*sys.modules)"
    command = [sys.executable, "-I", "-S", "-c", program]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_importing_effects_loads_nothing_heavy():
    added = modules_after("import safetydrift.effects") - modules_after("pass")
    assert "safetydrift.effects.labeler" in added
    heavy = [name for name in HEAVY if name in added]
    assert heavy == []
