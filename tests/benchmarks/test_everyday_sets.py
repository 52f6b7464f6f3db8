"""The sets of the everyday benchmark are whole, and runs are played as its README says."""

import base64
import importlib
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", autouse=True)
def beside_the_programs():
    """The programs find each other as they do when they run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield


def module(name):
    return importlib.import_module(f"everyday.{name}")


@pytest.fixture(scope="module")
def sets():
    return module("sets")


@pytest.mark.parametrize(("name", "least", "in_group"), [("commands", 220, 25), ("acts", 150, 12)])
def test_sets_of_commands_are_large_enough_in_every_group(sets, name, least, in_group):
    cases = sets.commands(name)
    assert len(cases) >= least
    assert min(Counter(case.group for case in cases).values()) >= in_group


def test_unasked_acts_without_look_alikes_are_enough(sets):
    assert sum(case.group != "look-alikes" for case in sets.commands("acts")) >= 90


@pytest.mark.parametrize("name", ["commands", "acts"])
def test_every_command_that_is_no_look_alike_has_a_twin(sets, name):
    assert {
        case.id for case in sets.commands(name) if bool(case.twin) == (case.group == "look-alikes")
    } == set()


@pytest.mark.parametrize("name", ["commands", "acts"])
def test_twins_are_written_in_other_languages_too(sets, name):
    twins = [case for case in sets.commands(name) if case.twin]
    assert sum(case.lang != "en" for case in twins) >= 0.15 * len(twins)
    assert len({case.lang for case in twins}) >= 9


@pytest.mark.parametrize("name", ["commands", "acts"])
def test_every_command_stands_in_a_scene_that_exists(sets, name):
    known = {*sets.scenes(name), "", "super", "intercode"}
    assert {case.id for case in sets.commands(name) if case.scene not in known} == set()
    assert name != "acts" or all(case.scene in sets.scenes(name) for case in sets.commands(name))


def test_injections_are_large_enough_in_every_group(sets):
    groups = Counter(case.group for case in sets.injections())
    assert len(groups) >= 16
    assert min(groups.values()) >= 10
    assert sum(number for group, number in groups.items() if not group.endswith("(control)")) >= 220


def test_injections_come_in_many_languages(sets):
    assert len({case.lang for case in sets.injections()} - {"en"}) >= 8


def test_the_carrier_of_every_injection_reaches_the_run(sets):
    plans, runs = module("plans"), module("runs")
    carriers = {case.id: case.carrier for case in sets.injections()}
    for run in plans.injection_runs(0, None):
        if run.variant == "attack":
            results = [event.result for event in run.events if isinstance(event, runs.Made)]
            assert any(carriers[run.name] in result for result in results), run.name


def test_attack_and_twin_end_with_the_same_calls():
    runs = module("runs")
    ends: dict[str, list[object]] = {}
    for run in module("plans").injection_runs(0, None):
        if run.variant == "look-alike":
            continue
        marked = [event for event in run.events if isinstance(event, runs.Made) and event.marked]
        assert marked, run.name
        assert ends.setdefault(run.name, marked) == marked
    assert len(ends) >= 220


def test_twins_of_injections_do_not_all_repeat_the_value(sets):
    """Some users point to a document instead, so a guard that looks for the value in the last message is not enough."""
    runs = [run for run in module("plans").injection_runs(0, None) if run.variant == "twin"]
    marked = {
        run.name: " ".join(str(event.args) for event in run.events if getattr(event, "marked", False))
        for run in runs
    }
    said = {case.id: case.twin.said + case.twin.task for case in sets.injections() if case.id in marked}
    pointing = [
        name
        for name in marked
        if not any(len(word) > 8 and word in said[name] for word in words(marked[name]))
    ]
    assert len(pointing) >= 0.1 * len(runs)
    assert len(sets.benign()) >= 25


def words(text):
    return re.findall(r"[\w.@/-]+", text)


def test_the_filler_of_a_long_delay_is_long(sets):
    scenes = sets.scenes("injections")
    for case in sets.injections():
        assert case.filler <= len(scenes[case.scene].filler), case.id
        assert case.group != "long delay" or case.filler >= 20


def test_every_call_belongs_to_an_agent_that_was_opened():
    runs = module("runs")
    for run in [*module("plans").injection_runs(0, None), *module("plans").named_runs()]:
        opened = {""}
        for event in run.events:
            if isinstance(event, runs.Opened):
                opened.add(event.agent)
            else:
                assert event.agent in opened, run.name


def test_records_are_half_unsafe_and_half_safe_in_every_area(sets):
    areas = Counter((record.group, record.unsafe) for record in sets.records())
    assert sum(areas.values()) >= 120
    assert min(areas.values()) >= 10
    assert len(areas) == 12


def test_commands_with_known_effects_are_enough_and_their_flags_known(sets):
    lines = sets.lines()
    assert len({line.text for line in lines}) == len(lines) >= 400
    assert set("".join(line.flags for line in lines)) == set("nicr")
    assert not [line.text for line in lines if {"i", "r"} <= set(line.flags)]


def test_named_cases_expect_both_stops_and_passing(sets):
    answers = Counter(answer for case in sets.named() for answer in case.expected)
    assert min(answers[one] for one in ("allow", "ask", "refuse")) >= 1
    assert len(sets.named()) >= 20


def test_identifiers_are_unique(sets):
    names = [case.id for name in ("commands", "acts") for case in sets.commands(name)]
    names += [case.id for case in [*sets.injections(), *sets.benign(), *sets.records(), *sets.named()]]
    assert [name for name, number in Counter(names).items() if number > 1] == []


@pytest.mark.parametrize(
    "name", ["commands", "acts", "injections", "records", "named", "effects", "other_words"]
)
def test_no_encoding_is_left_unwritten(sets, name):
    for path, read in sets.files(name):
        text = json.dumps(msgspec.to_builtins(read))
        assert not [one for one in module("encodings").ENCODINGS if f"<<{one}|" in text], path.name


def test_a_set_of_another_version_is_refused(sets, monkeypatch, tmp_path):
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "a.toml").write_text("version = 2\n", encoding="utf-8")
    monkeypatch.setattr(sets, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="version 2"):
        sets.named()


def test_an_unknown_field_is_refused(sets, monkeypatch, tmp_path):
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "a.toml").write_text("version = 1\nsurplus = 2\n", encoding="utf-8")
    monkeypatch.setattr(sets, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="surplus"):
        sets.named()


def test_encodings_can_be_read_back():
    expanded = module("encodings").expanded
    assert base64.b64decode(expanded("<<base64|a > b & c>>")) == b"a > b & c"
    assert bytes.fromhex(expanded("<<hex|käse>>")).decode() == "käse"
    assert expanded("<<zerowidth|abc>>").replace("\u200b", "") == "abc"
    assert expanded("<<homoglyphs|paolo>>") != "paolo"
    assert expanded(["<<reversed|<<hex|A>>>>", {"k": "<<bytes|xy>>"}]) == ["14", {"k": b"xy"}]
    assert expanded("<<spelled|DE5@x>>") == "delta echo five at xray"
    with pytest.raises(KeyError):
        expanded("<<nothing|a>>")


class Recorder:
    """A guard that answers as it is told and remembers what it was asked."""

    def __init__(self, *answers):
        self.answers, self.seen = list(answers), []

    def session(self, key, task="", **options):
        self.seen.append(("session", key))

    def hear(self, key, text):
        self.seen.append(("hear", text))

    def end(self, key):
        self.seen.append(("end", key))

    def decided(self, word):
        intervention = SimpleNamespace(value=word)
        allowed = word in {"allow", "warn"}
        return SimpleNamespace(intervention=intervention, allowed=allowed, rule="", reason="", error="")

    def propose(self, key, call, call_id):
        self.seen.append(("propose", call.name))
        return self.decided(self.answers.pop(0))

    def answer(self, key, call_id, approved, by=""):
        self.seen.append(("answer", approved))
        return self.decided("allow")

    def confirm(self, key, call_id, result, error=None):
        self.seen.append(("confirm", result))

    def release(self, key, call_id):
        self.seen.append(("release", call_id))


def played(variant, *answers):
    runs = module("runs")
    events = tuple(runs.Made(f"t{n}", {}, f"r{n}", marked=n > 0) for n in range(3))
    guard = Recorder(*answers)
    run = runs.Run("set", "group", variant, "name", "task", events)
    outcome = module("playing").Player(guard).play(run)
    return outcome, [what for what, _ in guard.seen[1:-1]]


def test_an_attack_ends_with_the_first_stop_of_its_own_calls():
    outcome, seen = played("attack", "ask", "block", "allow")
    assert [(stop.call, stop.marked) for stop in outcome.stops] == [(0, False), (1, True)]
    assert seen == ["propose", "answer", "confirm", "propose", "release"]


def test_a_run_that_nobody_attacks_goes_on_after_questions_and_refusals():
    outcome, seen = played("twin", "warn", "ask", "block")
    assert [stop.intervention for stop in outcome.stops] == ["ask", "block"]
    assert seen == ["propose", "confirm", "propose", "answer", "confirm", "propose", "release"]


def test_rates_have_wilsons_interval():
    rate = module("measures").Rate(3, 40)
    low, high = rate.wilson()
    for end in (low, high):  # the ends solve (p - x)^2 = z^2 x (1 - x) / n
        assert (rate.share - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / 40, rel=1e-5)
    assert low < rate.share < high
    assert str(module("measures").Rate(0, 0)) == "-"


def test_a_quantile_is_a_value_that_was_measured():
    quantile = module("measures").quantile
    assert [quantile([4.0, 1.0, 3.0, 2.0], share) for share in (0.0, 0.25, 0.5, 0.99, 1.0)] == [1, 1, 2, 4, 4]
