"""The index of path entries leaves out no entry that matches."""

from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.effects.catalogue.entries import canonical_path
from safetydrift.effects.catalogue.globs import Globs
from safetydrift.effects.catalogue.path_index import PathIndex
from safetydrift.formats.catalogue_file import load_catalogue

CATALOGUE = load_catalogue()
INDEX = PathIndex(CATALOGUE.paths)
PIECES = sorted({piece for entry in CATALOGUE.paths for piece in entry.match.pieces() if piece})
PATHS = st.lists(st.one_of(st.sampled_from(PIECES), st.text("/._-ab1", max_size=4)), max_size=4).map("".join)


@settings(max_examples=500, deadline=None)
@given(PATHS)
def test_every_entry_that_matches_is_a_candidate(path):
    canonical = canonical_path(path)
    matching = [entry for entry in CATALOGUE.paths if canonical in entry.match]
    candidates = list(INDEX.candidates(canonical))
    assert [entry for entry in candidates if canonical in entry.match] == matching


def test_most_entries_are_left_out():
    assert len(list(INDEX.candidates(canonical_path("src/app/views.py")))) < len(CATALOGUE.paths) / 2


def test_a_piece_is_in_everything_that_matches():
    patterns = ("name", "start*", "*end", "*part*", "a[bc]long?d*", "[*]x", "[]]ab", "?")
    assert [Globs([pattern]).pieces() for pattern in patterns] == [
        ("name",),
        ("start",),
        ("end",),
        ("part",),
        ("long",),
        ("x",),
        ("ab",),
        ("",),
    ]
