import pytest

from safetydrift.errors import SpaceError
from safetydrift.formats import load_space, shipped_spaces

OWN = """
format = "safetydrift.space/1"
name = "own"
risks = ["fine", "bad"]
violated = "bad"

[[dimensions]]
name = "data"
levels = ["none", "secret"]
accumulation = "highest"

[[rules]]
when = { data = "secret" }
risk = "bad"

[[rules]]
risk = "fine"
"""


def test_a_space_written_in_a_file_is_read_and_used(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    space = load_space(path)
    assert (space.name, space.n_states, space.violated) == ("own", 2, frozenset({1}))
    assert "paper" in shipped_spaces()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected format = 'safetydrift.space/1', got None"),
        (OWN.replace("space/1", "space/2"), "got 'safetydrift.space/2'"),
        ("= 3", "Invalid"),
        (OWN.replace('"secret"]', "]"), "two or more distinct levels"),
        (OWN + "\n# " + "x" * (1 << 20), "at most 1048576 bytes"),
    ],
)
def test_a_malformed_space_file_is_refused_by_name(tmp_path, content, message):
    path = tmp_path / "odd.toml"
    path.write_text(content)
    with pytest.raises(SpaceError) as caught:
        load_space(path)
    assert message in str(caught.value)
    assert "odd.toml" in str(caught.value)


def test_a_space_that_is_not_there_names_those_that_are():
    with pytest.raises(SpaceError, match=r"no space 'papre': not one of the shipped ones \(flow, paper\)"):
        load_space("papre")
