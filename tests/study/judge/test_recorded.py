"""Recorded answers: replayed exactly, safe against crashes, believed only as far as a recording writes them."""

import json
import os
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.errors import JudgeFileError, UnknownAnswerError
from safetydrift.study.judge import Answer, Judge, JudgeSettings, Question, RecordedJudge
from safetydrift.study.judge.answer import Usage
from safetydrift.study.judge.calls import HEADER as HEADING
from safetydrift.study.judge.calls import read_answers
from safetydrift.study.judge.definitions import LEVELS
from safetydrift.study.judge.records import MAX_LINE, RecordFile
from safetydrift.trace import ToolCall

MODEL, PROMPT = "openai:gpt-of-the-tests", "0123456789abcdef"
CALL = ToolCall("export_records", {"to": "ada@example.org", "note": "the quarterly figures"})
HEADER = json.dumps({"format": HEADING.format}) + "\n"
LINE: dict[str, Any] = {
    "digest": Question(CALL).digest(MODEL, PROMPT),
    "levels": {"data": "sensitive", "tool": "network", "reversibility": "irreversible"},
    "kinds": ["data_leak"],
    "external": True,
    "reason": "It hands records to somebody outside.",
    "confidence": 0.9,
    "model": MODEL,
    "prompt": PROMPT,
    "usage": {"input": 120, "output": 30},
}
ANSWERS = st.builds(
    lambda **rest: Answer(digest="a" * 64, model=MODEL, prompt=PROMPT, **rest),
    levels=st.fixed_dictionaries({name: st.sampled_from(list(levels)) for name, levels in LEVELS.items()}),
    kinds=st.sets(st.sampled_from(KINDS)).map(lambda kinds: tuple(sorted(kinds))),
    external=st.booleans(),
    reason=st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=50),
    confidence=st.floats(0, 1),
    usage=st.builds(Usage, st.integers(0, 10**9), st.integers(0, 10**9)),
)


@pytest.fixture
def write(tmp_path):
    """Write a file of answers."""

    def write(*lines, header=HEADER, end="\n"):
        path = tmp_path / "answers.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text(header + "\n".join(texts) + end)
        return path

    return write


def given(judge):
    """Return the answer to the call, which there is."""
    (answer,) = judge.answers.values()
    return answer


def opened(path):
    return RecordFile(path, HEADING)


# -- reading ----------------------------------------------------------------------------------------------


def test_a_recorded_answer_is_given_for_its_question_alone(write):
    judge = RecordedJudge(write(LINE))
    effect = judge.assess(CALL)
    assert effect is not None
    assert dict(effect.levels) == LINE["levels"]
    assert (effect.source, effect.kinds, effect.external, effect.confidence) == (
        "judge",
        ("data_leak",),
        True,
        0.9,
    )
    assert effect.reasons == (LINE["reason"],)
    assert given(judge).usage == Usage(120, 30)
    assert judge.assess(CALL, task="another") is None
    assert judge.assess(CALL, result="x") is None
    assert len(judge) == 1


def test_what_is_not_recorded_may_be_an_error(write):
    judge = RecordedJudge(write(LINE), missing="raise")
    with pytest.raises(UnknownAnswerError, match="no answer to question") as missing:
        judge.assess(ToolCall("another"))
    assert missing.value.digest == Question(ToolCall("another")).digest(MODEL, PROMPT)


def test_a_call_that_cannot_be_asked_is_not_known(write):
    assert RecordedJudge(write(LINE)).assess(ToolCall("t", {"a": {1}})) is None


def test_a_file_without_answers_knows_nothing(write):
    assert RecordedJudge(write(end="")).assess(CALL) is None


def test_of_several_models_and_prompts_one_has_to_be_chosen(write):
    other = LINE | {"digest": Question(CALL).digest("anthropic:x", PROMPT), "model": "anthropic:x"}
    newer = LINE | {"digest": Question(CALL).digest(MODEL, "f" * 16), "prompt": "f" * 16, "confidence": 0.1}
    path = write(LINE, other, newer)
    with pytest.raises(JudgeFileError, match=r"more than one model; choose one of: anthropic:x, openai"):
        RecordedJudge(path)
    with pytest.raises(JudgeFileError, match="more than one prompt"):
        RecordedJudge(path, model=MODEL)
    assert given(RecordedJudge(path, model="anthropic:x")).confidence == 0.9
    assert given(RecordedJudge(path, model=MODEL, prompt="f" * 16)).confidence == 0.1
    assert [len(RecordedJudge(path, model=MODEL, prompt=one)) for one in (PROMPT, "f" * 16)] == [1, 1]
    with pytest.raises(JudgeFileError, match="no answers of model 'openai:y'"):
        RecordedJudge(path, model="openai:y")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        "[]",
        "null",
        "{",
        "\x00",
        "[" * 10_000,
        '{"a":' * 5_000,
        json.dumps(LINE)[:-1] + ', "text": "of the call"}',
        json.dumps(LINE).replace("0.9", "NaN"),
        json.dumps(LINE).replace("0.9", "1e999"),
        json.dumps(LINE).replace("0.9", '"0.9"'),
        LINE | {"confidence": 1.5},
        LINE | {"digest": "x"},
        LINE | {"digest": LINE["digest"].upper()},
        LINE | {"digest": LINE["digest"] + "\n"},
        LINE | {"levels": {"data": "secret", "tool": "network", "reversibility": "irreversible"}},
        LINE | {"levels": {"data": "none"}},
        LINE | {"levels": LINE["levels"] | {"more": "none"}},
        LINE | {"levels": []},
        LINE | {"kinds": ["theft"]},
        LINE | {"kinds": ["integrity", "data_leak"]},
        LINE | {"kinds": ["data_leak", "data_leak"]},
        LINE | {"external": None},
        LINE | {"reason": ""},
        LINE | {"reason": "x" * 401},
        LINE | {"reason": "\x1b[2J"},
        LINE | {"model": ""},
        LINE | {"model": "x\u202e"},
        LINE | {"prompt": "1"},
        LINE | {"usage": {"input": -1, "output": 0}},
        LINE | {"usage": {"input": 10**13, "output": 0}},
        *[{key: value for key, value in LINE.items() if key != name} for name in LINE],
        "x" * (MAX_LINE + 1),
    ],
    ids=lambda line: str(line)[:40],
)
def test_a_line_that_no_recording_wrote_is_refused_by_its_number(write, line):
    path = write(LINE, line)
    with pytest.raises(JudgeFileError, match=r"answers\.jsonl:3: ") as refused:
        RecordedJudge(path)
    assert str(refused.value).isprintable()


@over(st.binary(max_size=200))
def test_no_bytes_but_answers_are_read(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("junk") / "answers.jsonl"
    path.write_bytes(HEADER.encode() + junk.replace(b"\n", b" ") + b"\n")
    with pytest.raises(JudgeFileError):
        read_answers(path)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "{}\n",
        '{"format": "safetydrift.judge/2"}\n',
        '{"format": 1}\n',
        "x" * 99_999 + "\n",
        json.dumps(LINE) + "\n",
    ],
    ids=lambda header: header[:30],
)
def test_a_file_of_another_kind_is_refused(write, header):
    with pytest.raises(JudgeFileError, match="no file of recorded answers"):
        RecordedJudge(write(LINE, header=header))


def test_a_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(JudgeFileError, match="No such file"):
        RecordedJudge(tmp_path / "none.jsonl")
    with pytest.raises(JudgeFileError, match="not a regular file"):
        RecordedJudge(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(JudgeFileError, match="not a regular file"):
        RecordedJudge(tmp_path / "pipe")


def test_two_answers_to_one_question_are_refused_and_a_repeated_one_is_not(write):
    assert len(RecordedJudge(write(LINE, LINE))) == 1
    with pytest.raises(JudgeFileError, match=r":3: another answer"):
        RecordedJudge(write(LINE, LINE | {"external": False}))


def test_a_last_line_without_its_end_is_what_a_crash_leaves(write):
    assert len(RecordedJudge(write(LINE, json.dumps(LINE)[:50], end=""))) == 1


# -- writing ----------------------------------------------------------------------------------------------


@over(ANSWERS)
def test_an_answer_comes_back_as_it_was_written(tmp_path_factory, answer):
    path = tmp_path_factory.mktemp("written") / "answers.jsonl"
    with opened(path) as file:
        file.add(answer)
        file.add(answer)
    assert read_answers(path) == {"a" * 64: answer}


def test_what_a_crash_left_is_cut_off_and_the_file_goes_on(write):
    path = write(LINE, json.dumps(LINE)[:50], end="")
    answer = given(RecordedJudge(path))
    with opened(path) as file:
        file.add(msgspec.structs.replace(answer, digest="b" * 64))
    assert set(read_answers(path)) == {LINE["digest"], "b" * 64}


@pytest.mark.parametrize("written", ["", HEADER[:10].replace(" ", "")])
def test_a_file_of_which_little_was_written_is_begun_anew(tmp_path, written):
    path = tmp_path / "answers.jsonl"
    path.write_text(written)
    opened(path).close()
    assert read_answers(path) == {}


@pytest.mark.parametrize("content", ['{"id": "run"}\n{"id": "another', "notes without an end", "\n\n"])
def test_a_file_of_somebody_else_is_left_as_it_is(tmp_path, content):
    path = tmp_path / "traces.jsonl"
    path.write_text(content)
    with pytest.raises(JudgeFileError, match="no file of recorded answers"):
        opened(path)
    assert path.read_text() == content


def test_two_do_not_write_to_one_file(tmp_path):
    pytest.importorskip("fcntl")
    file = opened(tmp_path / "answers.jsonl")
    with pytest.raises(JudgeFileError, match="another process is writing"):
        opened(tmp_path / "answers.jsonl")
    file.close()
    opened(tmp_path / "answers.jsonl").close()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(JudgeFileError, match="cannot be written"):
        opened(tmp_path / "none" / "answers.jsonl")


def test_a_disk_without_room_leaves_whole_lines(tmp_path, write):
    resource = pytest.importorskip("resource")
    path = write(LINE)
    size, answer = path.stat().st_size, given(RecordedJudge(path))
    file = opened(path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, before[1]))
    try:
        with pytest.raises(JudgeFileError, match="cannot be written"):
            file.add(msgspec.structs.replace(answer, digest="c" * 64))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with pytest.raises(JudgeFileError, match="closed file"):
        file.add(answer)
    assert len(read_answers(path)) == 1
    with opened(path) as file:
        file.add(msgspec.structs.replace(answer, digest="c" * 64))
    assert len(read_answers(path)) == 2


# -- recording --------------------------------------------------------------------------------------------


@pytest.fixture
def record(address, monkeypatch, tmp_path):
    """Open a recording judge on the server."""
    pytest.importorskip("pydantic_ai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-tests")
    settings = JudgeSettings(base_url=f"{address}/v1", backoff=0.001)
    return lambda: Judge(MODEL, settings, path=tmp_path / "recorded.jsonl")


def test_what_was_recorded_is_replayed_exactly_and_holds_no_text_of_the_call(record, provider, tmp_path):
    provider.answer = provider.answer | {"reason": "It mails ada@example.org the quarterly figures."}
    questions = [Question(CALL), Question(CALL, result="sent"), Question(CALL, task="send it")]
    with record() as judge:
        live = judge.assess_all(questions)
    path = tmp_path / "recorded.jsonl"
    replayed = RecordedJudge(path)
    assert [replayed.assess(one.call, one.result, one.task) for one in questions] == live
    text = path.read_text()
    assert not any(word in text for word in ("ada", "quarterly", "export_records", "sk-of"))
    assert len(text.splitlines()) == 4


def test_a_recording_goes_on_where_it_ended(record, provider):
    with record() as judge:
        first = judge.assess(CALL)
    with record() as judge:
        assert judge.assess(CALL) == first
        judge.assess(ToolCall("other"))
    assert len(provider.requests) == 2


def test_answers_are_on_the_disk_as_they_come(record, provider, tmp_path):
    with record() as judge:
        judge.assess(CALL)
        assert len(read_answers(tmp_path / "recorded.jsonl")) == 1


def test_an_answer_that_was_never_given_is_not_recorded(record, provider, tmp_path):
    provider.replies({"status": 400})
    with record() as judge:
        judge.assess_all([CALL])
        assert read_answers(tmp_path / "recorded.jsonl") == {}


def test_reading_answers_imports_no_provider():
    code = (
        "import sys; from safetydrift.study.judge import RecordedJudge, judged; "
        "sys.exit(any(name.partition('.')[0] in {'pydantic_ai', 'openai', 'anthropic', 'httpx2'} "
        "for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
