"""The fuzzer's targets, each for a while: no input may raise, take more than seconds, or more than a gigabyte."""

import resource
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SECONDS = 20
TARGETS = ("shell", "sql", "python", "javascript", "scripts", "http", "content", "run")


@pytest.mark.long
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris has no wheel for this platform")
@pytest.mark.parametrize("target", TARGETS)
def test_no_input_breaks_a_reader(target, tmp_path):
    options = (
        f"-max_total_time={SECONDS}",
        "-timeout=10",
        # A process counts the peak of the one that started it as its own.
        f"-rss_limit_mb={1024 + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}",
        "-max_len=8192",
        "-len_control=20",
        "-print_final_stats=1",
        f"-artifact_prefix={tmp_path}/",
    )
    done = subprocess.run(
        [sys.executable, str(HERE / "fuzz_effects.py"), target, *options],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=10 * SECONDS,
        check=False,
    )
    found = [path.read_bytes() for path in tmp_path.iterdir()]
    assert done.returncode == 0, f"{found}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert "stat::number_of_executed_units" in done.stderr


def test_every_target_has_seeds():
    assert {path.name for path in (HERE / "seeds").iterdir()} == set(TARGETS)
    assert all(any(folder.iterdir()) for folder in (HERE / "seeds").iterdir())
