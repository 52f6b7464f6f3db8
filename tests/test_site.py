"""The site of the documentation: built without a warning, searchable, and loading nothing from elsewhere."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_and_the_docstrings_can_be_searched(site):
    found = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    pages = {entry["location"].partition("#")[0] for entry in found}
    written = {
        path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
    }
    assert {page or "index.html" for page in pages} >= written
    assert any(entry["location"].endswith("#safetydrift.guard.guard.Guard.propose") for entry in found)


def test_no_page_loads_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert pages
    for page in pages:
        text = page.read_text("utf-8")
        loads = re.findall(
            r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=\"?((?:https?:)?//[^\" >]*)", text
        )
        assert loads == [], page
        assert "Content-Security-Policy" in text
    styles = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"url\(.?https?:|@import", styles)
