import pickle
from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack
from msgspec.structs import replace
from tests.formats.test_model_file import rewritten
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, move, run

from safetydrift.errors import ModelFileError, SnapshotError
from safetydrift.evaluation.cases import cases_of
from safetydrift.evaluation.predictors.monitors import MonitorPredictor, MonitorScores
from safetydrift.formats import load_catalogue, load_model, save_model
from safetydrift.monitor.categories import HEARD, Belief, Categories
from safetydrift.monitor.category_counts import counted
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.foresight import ForesightMonitor
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.monitor.maxima import Maxima
from safetydrift.monitor.mixing import mixed_outlook, mixed_verdict
from safetydrift.monitor.mixture import NEGLIGIBLE
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.outlook import Outlook
from safetydrift.monitor.policy import Policy
from safetydrift.monitor.session import TrajectoryState
from safetydrift.monitor.settings import Estimator, FitSettings
from safetydrift.monitor.updating import update
from safetydrift.monitor.verdict import Basis, Intervention
from safetydrift.states.task_words import WORD_BINS, task_digest, task_words
from safetydrift.states.trajectory import Move, Notion, observe
from safetydrift.trace import Ending, Step, ToolCall

PEEK = SPACE.encode({})
PATHS = {"files": (WRITE,) * 6, "mail": (WRITE, PEEK, WRITE, PEEK, READ, SEND), "desk": (READ, WRITE)}
WORDS = {
    "files": "tidy up the folder and move the old files",
    "mail": "answer the letter of the customer by mail",
    "desk": "water the plants",
}


def office(category, first, n, **extra):
    """Runs of one category; every third run that sends violates by it."""
    return [
        run(
            *PATHS[category], id=f"{category}-{number}", category=category, task=f"{category}-{number % 6}",
            onset=6 if category == "mail" and number % 3 == 0 else None, source="own",
            words=task_words(f"{WORDS[category]} number {'xyzvwu'[number % 6]}x"), **extra,
        )
        for number in range(first, first + n)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def runs():
    return [*office("files", 0, 30), *office("mail", 0, 30), *office("desk", 0, 12)]


@pytest.fixture(scope="module")
def model(runs):
    settings = FitSettings(estimator=Estimator.HIERARCHICAL)
    return fit_model(runs, SPACE, load_catalogue(), settings, threshold=0.3)[0]


@pytest.fixture(scope="module")
def monitor(model):
    return LookupMonitor(model)


def walked(monitor, effects, **start):
    state = monitor.start(**start)
    for effect in effects:
        state = monitor.follow(state, move(effect))
    return state


def soft(model):
    assert model.categories is not None
    return model.categories


def believed(monitor, state):
    return dict(monitor.categories(state))


# -- how much each category is believed -------------------------------------------------------------------


@given(
    words=st.sets(st.one_of(st.integers(0, WORD_BINS - 1), st.sampled_from(task_words(WORDS["mail"]))), max_size=20),
    effects=st.lists(st.sampled_from([READ, WRITE, SEND, *range(0, 36, 5)]), max_size=70),
    given=st.sampled_from(["", "mail", "files", "no such one"]),
    trust=st.floats(0.01, 0.99),
)  # fmt: skip
def test_what_is_believed_of_all_categories_adds_up_to_one(monitor, words, effects, given, trust):
    state = monitor.start(given, trust=trust)
    state = replace(state, belief=state.belief.asked(words))
    for effect in effects:
        state = monitor.follow(state, move(effect))
    shares = believed(monitor, state)
    assert sorted(shares) == ["", "desk", "files", "mail"]
    assert all(0.0 <= share <= 1.0 for share in shares.values())
    assert sum(shares.values()) == pytest.approx(1.0)
    verdict = monitor.verdict(state)
    assert isnan(verdict.probability) or 0.0 <= verdict.probability <= 1.0
    assert list(verdict.within) == sorted(verdict.within) or verdict.basis is Basis.UNSEEN
    assert isnan(verdict.low) or verdict.low <= verdict.probability <= verdict.high


def test_an_interval_holds_its_probability_though_both_are_rounded(monitor):
    for category in monitor.model.tables:
        for verdict in (*monitor.current_verdicts(category), *monitor.pending_verdicts(category)):
            assert isnan(verdict.low) or verdict.low <= verdict.probability <= verdict.high


def test_an_interval_holds_the_mean_whatever_a_category_hardly_believed_foresees(monitor):
    verdict = monitor.verdict(monitor.start("files"))
    likely = replace(verdict, probability=0.01, within=(0.01,) * len(verdict.within), low=0.0, high=0.011)
    far = replace(likely, probability=1.0, within=(1.0,) * len(verdict.within), low=1.0, high=1.0)
    mixed = mixed_verdict([(0.96, likely), (0.04, far)], monitor.policy, pending=False)
    assert mixed.probability == mixed.high == pytest.approx(0.0496)
    assert mixed.low == 0.0


def test_the_words_of_the_task_speak_first(monitor):
    for category, words in WORDS.items():
        ranked = monitor.categories(monitor.start(task=words))
        assert ranked[0][0] == category
        assert ranked[0][1] > 0.6


def test_without_words_every_category_is_as_likely_as_any_other(monitor):
    shares = believed(monitor, monitor.start())
    assert shares["files"] == shares["mail"] == shares["desk"]
    assert shares[AGGREGATE] == pytest.approx(monitor.model.categories.elsewhere)


def test_words_nobody_ever_used_say_nothing(monitor):
    assert believed(monitor, monitor.start(task="Quetzalcoatl")) == believed(monitor, monitor.start())


@pytest.mark.parametrize(("category", "effects"), [("files", (WRITE,) * 30), ("mail", (WRITE, PEEK) * 10)])
def test_what_a_run_does_tells_its_category_in_the_end(monitor, category, effects):
    ranked = monitor.categories(walked(monitor, effects))
    assert ranked[0][0] == category
    assert ranked[0][1] > 0.9


def test_a_wrong_category_is_overruled_by_what_the_run_does(monitor):
    assert monitor.categories(monitor.start("files", trust=0.9))[0][0] == "files"
    state = walked(monitor, (WRITE, PEEK) * 10, category="files", trust=0.9)
    shares = believed(monitor, state)
    assert shares["files"] < 0.01
    assert monitor.categories(state)[0][0] == "mail"
    hard = monitor.current_verdicts("files")[state.state].probability
    right = monitor.current_verdicts("mail")[state.state].probability
    soft = monitor.verdict(state).probability
    assert abs(soft - right) < 0.1 * abs(soft - hard)


def test_a_wrong_category_is_overruled_by_the_words_of_the_task(monitor):
    state = monitor.start("files", task=WORDS["mail"], trust=0.5)
    assert monitor.categories(state)[0][0] == "mail"


def test_the_more_a_category_is_trusted_the_more_it_is_believed(monitor):
    shares = [
        believed(monitor, monitor.start("mail", trust=trust))["mail"] for trust in (0.3, 0.6, 0.9, 0.99)
    ]
    assert shares == sorted(shares)
    assert shares[-1] > 0.9


def test_a_category_that_is_known_is_certain_and_costs_nothing(monitor):
    state = monitor.follow(monitor.start("mail", task=WORDS["files"]), move(READ))
    assert state.belief is None
    assert monitor.categories(state) == (("mail", 1.0),)
    assert monitor.verdict(state) is monitor.current_verdicts("mail")[state.state]
    assert (
        monitor.foresee(state, move(SEND))
        is monitor.pending_verdicts("mail")[monitor.follow(state, move(SEND)).state]
    )


def test_a_category_nobody_knows_is_as_good_as_none(monitor):
    assert monitor.start("no such category", task="a") == monitor.start(task="a")
    assert monitor.mixes("no such category")
    assert not monitor.mixes("mail")


def test_words_that_come_before_the_first_call_are_heard_and_later_ones_are_not(monitor):
    state = monitor.hear(monitor.start(), WORDS["mail"])
    assert state == monitor.start(task=WORDS["mail"])
    later = monitor.follow(state, move(READ))
    assert monitor.hear(later, WORDS["files"]).belief == later.belief


def test_a_state_does_not_grow_with_the_run(monitor):
    first = walked(monitor, (WRITE,) * HEARD)
    later = walked(monitor, (WRITE,) * (HEARD + 200))
    assert later.belief == first.belief
    assert len(later.snapshot()) < 2_000
    assert monitor.foresee(later, move(PEEK)) == monitor.foresee(first, move(PEEK))


def test_a_monitor_can_be_sent_to_another_process(monitor):
    again = pickle.loads(pickle.dumps(monitor))  # noqa: S301  # our own
    state = walked(monitor, (WRITE, PEEK), task=WORDS["mail"])
    assert again.verdict(state) == monitor.verdict(state)
    assert again.categories(state) == monitor.categories(state)


def test_what_is_remembered_of_rising_dimensions_is_bounded(monitor, monkeypatch):
    monkeypatch.setattr("safetydrift.monitor.lookup.MOST_REMEMBERED", 2)
    again = LookupMonitor(monitor.model)
    effects = (WRITE, PEEK, READ, WRITE, SEND, PEEK)
    assert walked(again, effects).since == walked(monitor, effects).since == (3, 5, 5)
    assert len(again._raised) <= 2


def test_recorded_runs_are_walked_as_live_ones(monitor, runs):
    one = replace(runs[40], category="")
    state = monitor.begin(one)
    assert state.belief == Belief("", 0.0, frozenset(one.words), (SPACE.start,))
    live = monitor.start(task=f"{WORDS['mail']} number {'xyzvwu'[10 % 6]}x")
    for made in one.moves:
        assert monitor.foresee(state, made) == monitor.foresee(live, made)
        state, live = monitor.follow(state, made), monitor.follow(live, made)
        assert monitor.verdict(state) == monitor.verdict(live)


# -- what follows for verdicts ----------------------------------------------------------------------------


def test_a_verdict_is_the_mean_of_the_categories_verdicts(monitor):
    state = walked(monitor, (WRITE,))
    shares = believed(monitor, state)
    least = NEGLIGIBLE * max(shares.values())
    parts = {
        name: monitor.current_verdicts(name)[state.state] for name, share in shares.items() if share >= least
    }
    parts = {name: one for name, one in parts.items() if one.basis is not Basis.UNSEEN}
    whole = sum(shares[name] for name in parts)
    expected = sum(shares[name] / whole * one.probability for name, one in parts.items())
    assert monitor.verdict(state).probability == pytest.approx(expected)
    spread = {one.probability for one in parts.values()}
    assert min(spread) < monitor.verdict(state).probability < max(spread)


def test_a_proposed_call_is_judged_by_where_it_would_lead(monitor):
    state = monitor.start()
    verdict = monitor.foresee(state, move(WRITE))
    assert verdict.state == monitor.follow(state, move(WRITE)).state
    assert len(monitor.start().belief.path) == 1  # nothing was recorded


def test_an_outlook_comes_from_all_categories(monitor):
    state = walked(monitor, (WRITE, PEEK))
    shares = believed(monitor, state)
    outlook = monitor.outlook(state)
    singles = [monitor.outlook(replace(state, category=name, belief=None)) for name in shares]
    known = [one.violates for one in singles if not isnan(one.violates)]
    assert min(known) < outlook.violates < max(known)
    assert outlook.violates + outlook.completes <= 1.0 + 1e-9
    assert sum(share for _, share in outlook.kinds) == pytest.approx(1.0, abs=0.02)
    assert [kind for kind, _ in monitor.kinds(state)] == [kind for kind, _ in outlook.kinds]


def verdict_of(monitor, probability, basis=Basis.ESTIMATED, low=0.0, high=1.0):
    return replace(
        monitor.current_verdicts("mail")[0],
        probability=nan if basis is Basis.UNSEEN else probability,
        within=(0.0, *[probability] * 10),
        eventually=probability,
        basis=basis,
        low=low,
        high=high,
    )


def test_mixing_leaves_out_who_knows_nothing_and_encloses_who_is_believed(monitor):
    policy = Policy(5, 0.45)
    one, other = verdict_of(monitor, 0.2, low=0.1, high=0.3), verdict_of(monitor, 0.8, low=0.6, high=0.9)
    lost = verdict_of(monitor, 0.5, Basis.UNSEEN)
    faint = verdict_of(monitor, 0.2, low=0.0, high=1.0)
    mixed = mixed_verdict([(0.48, one), (0.48, other), (0.5, lost), (0.04, faint)], policy, pending=False)
    assert mixed.probability == pytest.approx(0.488)
    assert (mixed.low, mixed.high) == (0.1, 0.9)
    assert mixed.alarm
    assert mixed.intervention is Intervention.WARN
    assert mixed_verdict([(0.9, lost), (0.1, one)], policy, pending=False) is one
    assert mixed_verdict([(0.9, lost), (0.1, lost)], policy, pending=False) is lost
    unsure = verdict_of(monitor, 0.8, low=nan, high=nan)
    assert isnan(mixed_verdict([(0.5, one), (0.5, unsure)], policy, pending=True).high)


def test_mixing_never_leaves_the_unit_interval(monitor):
    sure = verdict_of(monitor, 1.0)
    shares = [0.1, 0.2, 0.3, 0.3, 0.7, 1e-3]
    mixed = mixed_verdict([(share, sure) for share in shares], Policy(5), pending=False)
    assert max(mixed.within) <= 1.0
    assert mixed.eventually <= 1.0


def test_kinds_and_durations_are_weighed_by_how_likely_a_violation_is():
    likely = Outlook(violates=0.9, low=0.8, high=1.0, completes=0.1, steps=2.0, kinds=(("data_leak", 1.0),))
    rare = Outlook(violates=0.1, low=0.0, high=0.2, completes=0.9, steps=8.0, kinds=(("other", 1.0),))
    never = Outlook(violates=0.0, low=0.0, high=0.1, completes=1.0, steps=nan, kinds=())
    unknown = Outlook(violates=nan, low=nan, high=nan, completes=nan, steps=nan, kinds=())
    mixed = mixed_outlook([(0.4, likely), (0.4, rare), (0.2, never), (0.5, unknown)])
    assert mixed.violates == pytest.approx(0.4)
    assert mixed.completes == pytest.approx(0.6)
    assert mixed.steps == pytest.approx(0.9 * 2.0 + 0.1 * 8.0)
    assert [kind for kind, _ in mixed.kinds] == ["data_leak", "other"]
    assert [share for _, share in mixed.kinds] == pytest.approx([0.9, 0.1])
    assert (mixed.low, mixed.high) == (0.0, 1.0)
    assert mixed_outlook([(0.4, never), (0.5, unknown)]) is never
    assert isnan(mixed_outlook([(0.4, unknown), (0.5, unknown)]).violates)
    calm = mixed_outlook([(0.4, never), (0.6, never)])
    assert (isnan(calm.steps), calm.kinds) == (True, ())


def test_what_the_rules_call_violated_is_violated_in_every_category(runs):
    model = fit_model(runs, SPACE, load_catalogue(), FitSettings(notion=Notion.RULES), threshold=0.3)[0]
    monitor = LookupMonitor(model)
    state = walked(monitor, (READ, SEND))
    assert state.violated
    assert monitor.verdict(state).basis is Basis.VIOLATED
    assert monitor.outlook(state).violates == 1.0
    assert monitor.follow(state, move(READ)).belief == state.belief
    assert monitor.foresee(state, move(READ)).basis is Basis.VIOLATED


def test_a_state_of_another_model_is_followed_by_all_runs(model, monitor):
    plain = LookupMonitor(replace(model, categories=None))
    state = walked(monitor, (READ,))
    assert plain.verdict(state).probability == plain.current_verdicts(AGGREGATE)[state.state].probability
    assert plain.start().belief is None
    assert plain.categories(plain.start()) == (("", 1.0),)


def test_a_risk_score_asks_for_categories_only_when_somebody_asks_for_the_outlook():
    names = ("banking", "travel", "workspace")
    counts = dict.fromkeys(task_words("Book me a hotel"), ((1, 3),))
    categories = Categories(names=names, tasks=(3, 3, 3), words=counts)
    model = replace(load_model(), categories=categories)
    monitor = ForesightMonitor(model)
    mixture = monitor._mixture
    assert mixture is not None
    state = monitor.start(task="Book me a hotel")
    assert state.facts is not None
    assert state.belief == Belief("", 0.0, state.facts.task_words, (model.space.start,))
    monitor.check_pending(state, ToolCall("read_file"))
    state, _ = monitor.check(state, Step(ToolCall("read_file"), "text"))
    assert mixture.shares.cache_info().currsize == 0
    assert state.belief is not None
    assert len(state.belief.path) == 2
    outlook = monitor.outlook(state)
    assert mixture.shares.cache_info().currsize == 1
    assert outlook.violates == monitor.verdict(state).eventually
    assert monitor.categories(monitor.start(task="Book me a hotel"))[0][0] == "travel"
    again = TrajectoryState.restore(state.snapshot(), model.space)
    assert again == state
    assert monitor.outlook(again) == outlook


# -- counting ---------------------------------------------------------------------------------------------


def test_a_task_counts_once_however_often_it_was_run(runs, model):
    categories = soft(model)
    assert categories.names == ("desk", "files", "mail")
    assert categories.tasks == (6, 6, 6)
    (mail,) = task_words("customer")
    assert categories.words[mail] == ((2, 6),)
    assert {word for one in runs for word in one.words} == set(categories.words)


def test_runs_without_a_category_and_of_other_tasks_are_not_counted(runs):
    digests = {task_digest("own", one.category, one.task) for one in runs if one.category == "mail"}
    nameless = [replace(one, category="") for one in runs]
    assert getattr(counted([*runs, *nameless], digests), "names", ()) == ("mail",)
    assert counted(nameless, {task_digest("own", "", one.task) for one in runs}) is None


def test_soft_categories_can_be_left_out_and_need_two_categories(runs, catalogue):
    without = fit_model(runs, SPACE, catalogue, FitSettings(soft_categories=False), threshold=0.3)[0]
    assert without.categories is None
    only = fit_model(office("mail", 0, 9), SPACE, catalogue, threshold=0.3)[0]
    assert soft(only).names == ("mail",)
    assert LookupMonitor(only).start(task="mail").belief is None


def test_adding_runs_counts_their_words_as_a_fit_on_all_runs_would(runs, catalogue):
    first, rest = [one for one in runs if one.category != "desk"], office("desk", 0, 12)
    more = [*rest, *office("mail", 40, 5)]  # known tasks, which count no second time
    before = fit_model(first, SPACE, catalogue, threshold=0.3)[0]
    whole = fit_model([*first, *more], SPACE, catalogue, threshold=0.3)[0]
    after = update(before, more).model
    assert after.categories == whole.categories
    assert after.settings == whole.settings
    single = fit_model(office("mail", 0, 30), SPACE, catalogue, threshold=0.3)[0]
    assert soft(update(single, office("files", 0, 30)).model).names == ("files", "mail")


def test_adding_runs_to_a_model_that_counted_no_words_counts_none(runs, catalogue):
    old = replace(fit_model(runs[:60], SPACE, catalogue, threshold=0.3)[0], categories=None)
    assert update(old, office("desk", 0, 12)).model.categories is None
    plain = FitSettings(soft_categories=False)
    fitted = fit_model(runs[:60], SPACE, catalogue, plain, threshold=0.3)[0]
    assert update(fitted, office("desk", 0, 12)).model.categories is None


def test_thresholds_are_suggested_for_runs_of_no_category_as_they_will_be_followed(runs, model):
    nameless = [replace(one, category="") for one in runs]
    observed = [(one, observe(one, SPACE, model.notion, model.unknown_onset)) for one in nameless]
    thresholds = Maxima.along(LookupMonitor(model), observed).thresholds(0.1, 0.1)
    monitor = LookupMonitor(replace(model, policy=Policy(5, *thresholds)))
    alarms = []
    for one in nameless:
        if not one.label.violated:
            state = monitor.begin(one)
            verdicts = [monitor.verdict(state)]
            for move in one.moves:
                state = monitor.follow(state, move)
                verdicts.append(monitor.verdict(state))
            alarms.append(any(verdict.alarm for verdict in verdicts))
    assert sum(alarms) <= 0.1 * len(alarms)


# -- files and snapshots ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("soft") / "model.json"
    save_model(model, path)
    return path


def test_categories_survive_their_file(model, saved, tmp_path):
    assert load_model(saved).categories == model.categories
    save_model(load_model(saved), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == saved.read_bytes()


def test_a_file_without_them_loads_and_goes_by_all_runs(saved):
    old = load_model(rewritten(saved, lambda content: content.pop("categories")))
    assert old.categories is None
    monitor = LookupMonitor(old)
    assert monitor.verdict(monitor.start()) is monitor.current_verdicts(AGGREGATE)[SPACE.start]


def changed(name, value):
    return lambda part: part.__setitem__(name, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed("names", ["desk", "files", "nobody"]), "not the sorted names of its tables"),
        (changed("names", ["files", "desk", "mail"]), "not the sorted names of its tables"),
        (changed("names", ["desk", "files", "files"]), "not the sorted names of its tables"),
        (changed("names", ["", "files", "mail"]), "not the sorted names of its tables"),
        (changed("names", []), "not the sorted names of its tables"),
        (changed("names", "desk"), "missing or of the wrong shape"),
        (changed("names", [["desk"], "files", "mail"]), "missing or of the wrong shape"),
        (changed("tasks", [6, 6]), "how many tasks"),
        (changed("tasks", [6, 6, 0]), "missing or of the wrong shape"),
        (changed("tasks", [6, 6, True]), "missing or of the wrong shape"),
        (changed("tasks", [6, 6, 1 << 50]), "missing or of the wrong shape"),
        (changed("words", {str(WORD_BINS): [[0, 1]]}), "missing or of the wrong shape"),
        (changed("words", {"-1": [[0, 1]]}), "missing or of the wrong shape"),
        (changed("words", {"x": [[0, 1]]}), "missing or of the wrong shape"),
        (changed("words", {"7": [[3, 1]]}), "not counted once by category"),
        (changed("words", {"7": [[0, 7]]}), "counted in more tasks than there are"),
        (changed("words", {"7": [[0, 0]]}), "counted in more tasks than there are"),
        (changed("words", {"7": [[0, 1.5]]}), "missing or of the wrong shape"),
        (changed("words", {"7": [[0]]}), "missing or of the wrong shape"),
        (changed("words", {"7": [[0, 1, 1]]}), "missing or of the wrong shape"),
        (changed("words", {"7": []}), "not counted once by category"),
        (changed("words", {"7": [[1, 1], [0, 1]]}), "not counted once by category"),
        (changed("words", {"7": [[1, 1], [1, 1]]}), "not counted once by category"),
        (changed("words", [[7, 0, 1]]), "missing or of the wrong shape"),
        (changed("words", 7), "missing or of the wrong shape"),
        (changed("words", None), "missing or of the wrong shape"),
        (changed("pace", 1.5), "missing or of the wrong shape"),
        (changed("pace", nan), "missing or of the wrong shape"),
        (changed("elsewhere", 0.0), "missing or of the wrong shape"),
        (changed("leaning", 0), "missing or of the wrong shape"),
        (changed("pseudo_tasks", True), "missing or of the wrong shape"),
        (changed("pseudo_tasks", "1"), "missing or of the wrong shape"),
        (changed("mood", 1), "missing or of the wrong shape"),
        (lambda part: part.pop("names"), "missing or of the wrong shape"),
        (lambda part: part.clear(), "missing or of the wrong shape"),
    ],
)
def test_hostile_categories_are_refused(saved, change, message):
    with pytest.raises(ModelFileError, match=message):
        load_model(rewritten(saved, lambda content: change(content["categories"])))


@pytest.mark.parametrize("part", [[], 7, "words", [1, 2]])
def test_what_is_no_table_of_categories_is_refused(saved, part):
    with pytest.raises(ModelFileError, match="missing or of the wrong shape"):
        load_model(rewritten(saved, lambda content: content.__setitem__("categories", part)))


def test_counts_that_contradict_each_other_give_probabilities_all_the_same(saved):
    def inflate(content):
        table = content["tables"]["mail"]
        table["counts"] = [[row, *[number * 50 if place % 2 else number for place, number in enumerate(pairs)]]
                           for row, *pairs in table["counts"]]  # fmt: skip

    monitor = LookupMonitor(load_model(rewritten(saved, inflate)))
    state = walked(monitor, (READ, READ, WRITE, SEND))
    assert sum(believed(monitor, state).values()) == pytest.approx(1.0)


def test_a_state_survives_its_snapshot(monitor):
    state = walked(monitor, (READ, WRITE), category="mail", task=WORDS["desk"], trust=0.7)
    again = TrajectoryState.restore(state.snapshot(), SPACE)
    assert again == state
    assert monitor.verdict(again) == monitor.verdict(state)


@pytest.mark.parametrize(
    "belief",
    [
        7,
        [],
        ["mail", 0.5, [1]],
        ["mail", 0.5, [1], [0], 1],
        [7, 0.5, [1], [0]],
        ["mail", 1.0, [1], [0]],
        ["mail", nan, [1], [0]],
        ["mail", True, [1], [0]],
        ["mail", "0.5", [1], [0]],
        ["mail", 0.5, [WORD_BINS], [0]],
        ["mail", 0.5, [-1], [0]],
        ["mail", 0.5, "words", [0]],
        ["mail", 0.5, [1], []],
        ["mail", 0.5, [1], [60]],
        ["mail", 0.5, [1], [0.0]],
        ["mail", 0.5, [1], [0] * (HEARD + 2)],
    ],
)
def test_hostile_snapshots_are_refused(monitor, belief):
    *parts, _ = msgpack.decode(monitor.start("mail").snapshot())
    with pytest.raises(SnapshotError, match="not the state of a run"):
        TrajectoryState.restore(msgpack.encode([*parts, belief]), SPACE)


def test_a_snapshot_with_a_part_too_many_is_refused(monitor):
    parts = msgpack.decode(monitor.start().snapshot())
    with pytest.raises(SnapshotError, match="not the state of a run"):
        TrajectoryState.restore(msgpack.encode([*parts, None]), SPACE)


@given(
    st.sets(st.integers(0, WORD_BINS - 1), max_size=9), st.lists(st.integers(0, 59), min_size=1, max_size=65)
)
def test_every_belief_survives_its_snapshot(monitor, words, path):
    state = replace(monitor.start(), belief=Belief("", 0.0, frozenset(words), tuple(path)))
    assert TrajectoryState.restore(state.snapshot(), SPACE) == state


def same(one, other):
    return one is not None and other is not None and list(one) == list(other)


# -- in the evaluation ------------------------------------------------------------------------------------


def test_runs_of_unknown_category_are_scored_as_the_monitor_follows_them(model, runs):
    nameless, _ = cases_of([replace(one, category="") for one in runs[::3]], SPACE)
    scored = MonitorScores("soft", LookupMonitor(model)).score(nameless)
    named, _ = cases_of(runs[::3], SPACE)
    untold = MonitorScores("soft", LookupMonitor(model), told=False).score(named)
    assert (untold.within == scored.within).all()
    assert same(untold.pending, scored.pending)
    told = MonitorScores("hard", LookupMonitor(model)).score(named)
    assert (told.within != scored.within).any()


def test_a_predictor_that_is_told_nothing_is_fitted_with_categories(runs, catalogue):
    cases, _ = cases_of(runs, SPACE)
    fitted = MonitorPredictor("soft", SPACE, catalogue, told=False).fit(cases)
    assert set(fitted.monitor.model.tables) > {AGGREGATE}
    assert fitted.score(cases).within.shape == (int(cases.first_point[-1]), 3)


def test_moves_are_followed_alike_by_index_and_by_move(monitor):
    state = monitor.start(task=WORDS["files"])
    assert monitor.follow(state, Move("t", WRITE, WRITE)) == monitor.follow(state, move(WRITE))


def test_runs_cut_off_teach_words_as_well(catalogue):
    cut = [*office("mail", 0, 6, ending=Ending.CENSORED), *office("files", 0, 6)]
    assert soft(fit_model(cut, SPACE, catalogue, threshold=0.3)[0]).tasks == (6, 6)
