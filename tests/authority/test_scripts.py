"""Scripts that a call writes."""

import pytest

from safetydrift.authority.scripts import scripts_in
from safetydrift.trace import ToolCall


def written(tool, args, *paths):
    return [
        (path, call.name, next(iter(call.args.values())))
        for path, call in scripts_in(ToolCall(tool, args), paths, by_shell=tool == "bash")
    ]


@pytest.mark.parametrize(
    "command",
    [
        "cat > a.sh <<'EOF'\nrm -rf /srv\nEOF",
        "cat <<EOF > a.sh\nrm -rf /srv\nEOF\nchmod +x a.sh",
        "tee a.sh <<EOF\nrm -rf /srv\nEOF",
        "cat <<-EOF >> a.sh\nrm -rf /srv\n\tEOF",
        "echo 'rm -rf /srv' > a.sh",
        "mkdir x; printf 'rm -rf /srv' >> a.sh && chmod +x a.sh",
    ],
)
def test_what_a_shell_writes_is_read(command):
    assert written("bash", {"command": command}, "a.sh") == [("a.sh", "bash", "rm -rf /srv")]


def test_what_a_tool_writes_is_read_in_its_language():
    code = "import os\nos.remove('x')\n"
    assert written("write_file", {"path": "b.py", "content": code}, "b.py") == [("b.py", "python", code)]
    shebang = "#!/bin/sh\nrm x\n"
    assert written("write_file", {"path": "run", "content": shebang}, "run") == [("run", "bash", shebang)]


@pytest.mark.parametrize(
    ("tool", "args", "paths"),
    [
        ("bash", {"command": "echo done"}, ("a.sh",)),
        ("write_file", {"path": "notes.txt", "content": "rm -rf /"}, ("notes.txt",)),
        ("bash", {"command": "echo 'unfinished > a.sh"}, ("a.sh",)),
        ("bash", {"command": "cat > a.sh <<EOF\n" + "x" * 100_000}, ("a.sh",)),
        ("bash", None, ("a.sh",)),
        ("bash", {"command": "echo 'x' > a.sh"}, ()),
    ],
)
def test_what_is_no_script_is_none(tool, args, paths):
    assert written(tool, args, *paths) == []
