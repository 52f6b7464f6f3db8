"""What a run remembers of who asked for what."""

import msgspec
import pytest

from safetydrift.authority.ledger import MAX_CHARACTERS, MAX_FILES, MAX_TEXTS, KnownFile, Ledger
from safetydrift.authority.texts import UNTRUSTED, SourceText
from safetydrift.effects.operations import CERTAIN, Operation

EMPTY = Ledger.empty(b"salt").hear("Send the report to ann@example.org")


def known(ledger, path):
    found = ledger.file(path)
    assert found is not None
    return found


def filled(count, **options):
    ledger = EMPTY
    for number in range(count):
        ledger = ledger.with_text(SourceText(number, UNTRUSTED, text=f"text {number}", **options))
    return ledger


def test_texts_are_bounded_and_those_that_speak_to_the_agent_stay():
    ledger = EMPTY.with_text(SourceText(0, UNTRUSTED, text="do evil.example now", speaks=((0, 19),)))
    for number in range(3 * MAX_TEXTS):
        ledger = ledger.with_text(SourceText(number + 1, UNTRUSTED, text=f"text {number}"))
    assert len(ledger.texts) == MAX_TEXTS
    assert ledger.places("evil.example")[0].speaks


def test_characters_are_bounded():
    ledger = EMPTY
    for number in range(20):
        ledger = ledger.with_text(SourceText(number, UNTRUSTED, text="x " * 32_000))
    assert sum(len(text.text) for text in ledger.texts) <= MAX_CHARACTERS


def test_files_are_bounded_and_those_with_a_label_stay():
    labelled = EMPTY.file_digest("keys.tar")
    ledger = EMPTY.with_files([(labelled, KnownFile(level=2))])
    for number in range(2 * MAX_FILES):
        ledger = ledger.with_files([(ledger.file_digest(f"f{number}"), KnownFile(made=True))])
    assert len(ledger.files) == MAX_FILES
    assert known(ledger, "keys.tar").level == 2


@pytest.mark.parametrize("path", ["out/a.txt", "./out/a.txt", "out//a.txt", "out/sub/../a.txt", "out/a.txt/"])
def test_a_file_is_known_however_its_path_is_written(path):
    ledger = EMPTY.with_files([(EMPTY.file_digest("out/a.txt"), KnownFile(made=True))])
    assert known(ledger, path).made


def test_what_a_folder_is_its_files_are():
    ledger = EMPTY.with_files([(EMPTY.file_digest("/srv/work"), KnownFile(made=True))])
    assert known(ledger, "/srv/work/deep/a").made
    assert ledger.file("/srv/workshop") is None


def test_a_part_of_a_run_inherits_the_users_words_and_nothing_else():
    part = filled(3).inherited()
    assert part.request.said("ann@example.org")
    assert not part.texts
    assert not part.files


def test_a_store_keeps_no_text_and_reads_back_what_it_kept():
    script = KnownFile(
        made=True, latent=(Operation("delete", "/srv", "path", "destruction", CERTAIN, "delete /srv"),)
    )
    ledger = filled(3).with_files([(EMPTY.file_digest("x.sh"), script)])
    data = msgspec.msgpack.encode(ledger.kept())
    assert b"text" not in data
    assert b"/srv" not in data
    back = msgspec.msgpack.decode(data, type=Ledger)
    assert back.kept() == ledger.kept()
    assert known(back, "x.sh").latent[0].harm == "destruction"
    assert back.request.said("ann@example.org")
