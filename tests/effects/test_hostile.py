"""Hostile input: of whatever size and shape a call is, it ends with a cautious effect, in bounded work and memory.

What is measured is memory in a process of its own, and work that is counted. The only clock is an alarm that ends a
test that hangs.
"""

import gc
import json
import math
import os
import resource
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.effects import Labeler
from safetydrift.effects.history import History
from safetydrift.effects.languages import READERS, compiled, javascript, trees
from safetydrift.effects.languages.shell.grammar import parse
from safetydrift.effects.reading import MAX_TEXT, Reading, UnreadableError
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.trace import Step, ToolCall

LABELER = Labeler(load_catalogue())
RANKS = LABELER.catalogue.scales.ranks
HARMLESS = RANKS(LABELER.propose(ToolCall("bash", {"command": "true"})))
LONG = 10_000_000
DEEP = 100_000
HANGS = 60

TOOLS = {"shell": "bash", "python": "ipython", "javascript": "evaluate_script", "sql": "execute_sql"}


@pytest.fixture(autouse=True)
def _alarm():
    """End a test that hangs, even inside a compiled library."""
    if hasattr(signal, "alarm"):
        signal.alarm(HANGS)
        yield
        signal.alarm(0)
    else:
        yield


def levels(effect):
    return "/".join(effect[name] for name in ("data", "tool", "reversibility"))


def through(call, result="done"):
    """Let a call go all the way: proposed, executed, remembered, and proposed again."""
    history = History().hears("please do it")
    proposed = LABELER.propose(call, history)
    step = Step(call, result)
    effect, later = LABELER.read_step(step, history)
    again = LABELER.propose(call, later)
    for told in (proposed, effect, again):
        assert told.reasons
        assert told["tool"]
    return proposed


def read(language, text):
    reading = Reading(LABELER.catalogue, LABELER.boundary, READERS)
    try:
        READERS[language](reading, text)
    except UnreadableError as problem:
        reading.unreadable(str(problem))
    return reading.effect()


def is_cautious(effect):
    """Whether something about an effect is beyond that of a command that does nothing."""
    return any(a > b for a, b in zip(RANKS(effect), HARMLESS, strict=True)) or effect.confidence < 1


# -- texts in a language -----------------------------------------------------------------------------------

OPENED = {
    "shell": ("(", "((", "$(", "$((", "${", "${a:-", "{ ", "`", '"$(', "'", '"', "<(", "[[ ", "if ", "case a in ",
              "for a in ", "while ", "f() {", "cat <<A ", "cat <<-'A'\n", "$'", "a=(", "\\"),
    "python": ("(", "[", "{", "f(", "'''", '"', "lambda: ", "not ", "-", "~", "await ", "a[", "{1:", "f'{", "if a:\n ",
               "(yield ", "with (", "print(", "\\\n", "x = "),
    "javascript": ("(", "[", "{", "`${", "'", "/*", "f(", "()=>{", "a=>", "class A{a(){", "new ", "!", "<a>", "if(a)",
                   "[...", "a?", "a[", "</", "async ", "${"),
    "sql": ("(", "SELECT (", "CASE WHEN ", "'", '"', "`", "/*", "$a$", "NOT ", "-", "ARRAY[", "WITH a AS (", "EXISTS (",
            "\\! ", "BEGIN ", "a."),
}  # fmt: skip
TEXTS = [(language, sign) for language, signs in OPENED.items() for sign in signs]


@pytest.mark.parametrize("size", [60, 1000, DEEP])
@pytest.mark.parametrize(("language", "sign"), TEXTS, ids=[f"{one} {sign!r}" for one, sign in TEXTS])
def test_what_is_opened_without_end_is_not_taken_for_harmless(language, sign, size):
    text = sign * (size if len(sign) * size < MAX_TEXT or size == DEEP else MAX_TEXT // len(sign))
    effect = read(language, text)
    assert effect.reasons
    assert len(text) <= MAX_TEXT or levels(effect) == levels(LABELER.propose(ToolCall("frobnicate")))


@pytest.mark.parametrize("sign", OPENED["shell"])
def test_a_shell_command_that_never_ends_is_cautious(sign):
    for count in (1, 20, 1000, DEEP):
        assert is_cautious(read("shell", "true " + sign * count + "a")), count


NESTED = [
    ("shell", "(", ")"),
    ("shell", "$(", ")"),
    ("shell", "`${", "}`"),
    ("shell", "{ ", "; }"),
    ("shell", "$(echo ", ")"),
    ("shell", "${a:-", "}"),
    ("shell", "if true; then ", "; fi"),
    ("shell", "bash -c ", ""),
    ("shell", "eval ", ""),
    ("python", "(", ")"),
    ("python", "[", "]"),
    ("python", "f(", ")"),
    ("python", "lambda: ", ""),
    ("python", "-", ""),
    ("javascript", "(", ")"),
    ("javascript", "()=>{", "}"),
    ("javascript", "[", "]=a"),
    ("javascript", "`${", "}`"),
    ("sql", "SELECT (", ")"),
    ("sql", "CASE WHEN ", " THEN 1 END"),
    ("perl", "(", ")"),
    ("ruby", '"#{', '}"'),
    ("php", "[", "]"),
]


@pytest.mark.parametrize(("language", "left", "right"), NESTED, ids=[f"{one[0]} {one[1]}" for one in NESTED])
def test_deep_nesting_neither_crashes_nor_hides_what_is_inside(language, left, right):
    inside = {"shell": "rm -rf /srv", "sql": "1"}.get(language, "1")
    for count in (1, 10, 30, 60, 500, 3000, DEEP):
        effect = read(language, left * count + inside + right * count)
        if language == "shell" and left not in {"${a:-", "`${"}:
            assert effect["reversibility"] == "irreversible" or is_cautious(effect)
            assert count > 1 or effect["reversibility"] == "irreversible"


GROWING = {
    "variables that double": "a=aaaaaaaa;" + "a=$a$a;" * 60 + " echo $a",
    "variables of variables": "a0=xxxxxxxxxx;"
    + "".join(f"a{n + 1}=$a{n}$a{n}$a{n};" for n in range(60))
    + "echo $a60",
    "alternatives": "".join(f"if x; then v{n}=1; else v{n}=2; fi;" for n in range(40))
    + "rm "
    + "".join(f"$v{n}" for n in range(40)),
    "a range": "rm {1..999999999}",
    "ranges": "rm " + "{1..999999999}" * 50,
    "brace lists": "rm " + "{a,b}" * 60,
    "brace lists of lists": "rm " + "{a,{b," * 40 + "c" + "}}" * 40,
    "functions": "".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }};" for n in range(60)) + "f60() { rm x; }; f0",
    "a function of itself": "f() { f | f & }; f",
    "an alias of itself": "alias a='a a'; a",
    "evals": "a='eval $a$a'; eval $a",
    "substitutions": "echo " + "`${" * 40 + "a" + "}`" * 40,
    "replacements": "a=aaaaaaaaaaaaaaaa;" + "a=${a//a/$a};" * 40 + "echo $a",
    "arithmetic": "echo $((9**9**9**9**9))",
    "a loop": "for i in {1..999999999}; do for j in $(seq 999999999); do rm $i$j; done; done",
    "printf": "printf '%999999999s' x | sh",
    "arrays": "a=(x);" + "a+=(${a[@]} ${a[@]});" * 60 + 'rm "${a[@]}"',
}


@pytest.mark.parametrize("name", GROWING)
def test_what_would_grow_without_bound_is_not_written_out(name):
    effect = read("shell", GROWING[name])
    assert is_cautious(effect) or "echo" in GROWING[name]
    assert sum(map(len, effect.reasons)) < 10_000


MANY = {
    "words": "rm " + "a " * 30_000,
    "options": "rm " + "-f " * 20_000 + "a",
    "long options": "curl " + "--data=a " * 7000 + "https://example.org",
    "parts of a pipeline": "cat a " + "| tee b " * 8000,
    "commands": "rm a; " * 10_000,
    "conditions": "true " + "&& rm a " * 8000,
    "redirections": "true " + "> a " * 15_000,
    "here-documents": "cat " + "".join(f"<<E{n} " for n in range(8000)),
    "assignments": "a=b " * 15_000 + "rm x",
    "substitutions": "echo " + "$(rm a) " * 8000,
    "wrappers": "sudo " * 12_000 + "rm a",
    "xargs": "xargs " * 10_000 + "rm a",
    "functions": "".join(f"f{n}() {{ rm a; }}\n" for n in range(3000)),
    "arms of a case": "case a in " + "b) rm a;; " * 6000 + "esac",
}


@pytest.mark.parametrize("name", MANY)
def test_a_great_many_parts_end_no_lower_than_one(name):
    effect = read("shell", MANY[name][:MAX_TEXT])
    assert is_cautious(effect)


@pytest.mark.parametrize(
    "sign", ["qx`", "/* ", "--[[\n", "<#", "$a", "a ", "$a.=$a;", "=begin\n", "<<E\n", "a.", "[exec "]
)
@pytest.mark.parametrize(
    "language", ["perl", "ruby", "php", "lua", "awk", "r", "tcl", "groovy", "powershell"]
)
def test_a_script_of_one_sign_only_is_read(language, sign):
    assert read(language, sign * (MAX_TEXT // len(sign))).reasons


@pytest.mark.parametrize("word", ["sudo", "env", "a=b", "bash", "-c", "(" * 1000, "\0", "\ud800", "x" * 1000])
def test_an_argument_vector_of_any_length_is_read_or_cautious(word):
    for count in (1, 300, 5000, 200_000):
        effect = LABELER.propose(ToolCall("bash", {"command": [word] * count}))
        assert effect.reasons
        if count == 200_000:
            assert levels(effect) == levels(LABELER.propose(ToolCall("frobnicate")))


# -- characters --------------------------------------------------------------------------------------------

ODD = {
    "lone surrogates": "\ud800\udfff\udc00",
    "NUL": "\0",
    "an order of reading": "\u202egro.elpmaxe\u202c",
    "the last character": "\U0010ffff",
    "private": "\U000f0000",
    "no character": "\ufdd0\uffff",
    "a byte order mark": "\ufeff",
    "a wide blank": "\u3000\u00a0",
    "a line of another kind": "\u2028\x85\x0b",
    "a letter that grows": "\u0130\ufb03\u1e9e",
    "combining": "a" + "\u0301" * 500,
    "digits of elsewhere": "\u0663\u06f3\u0be7",
    "control": "\x1b[2K\x08\x7f",
}
PLACES = {
    "shell": ("%s", "rm %s", "{%s", "{%s..3}", "rm {1..%s}", "rm ${%s}", "%s=1; rm $%s", "cat <<%s\nx\n%s\nrm x",
              "[[ a =~ %s ]]", "rm ${a/%s/b}", "rm $'%s'", "%s() { rm x; }; %s", "case %s in %s) rm x;; esac", "$%s",
              "`%s`", "for %s in a; do x; done"),
    "python": ("%s", "x = '%s'", "import %s", "f'{%s}'", "# %s", "!%s", "b'%s'", "%%%s"),
    "javascript": ("%s", "'%s'", "`${%s}`", "/%s/", "// %s", "a.%s()", "<a>%s</a>", "#!%s", "<!-- %s"),
    "sql": ("%s", "SELECT '%s'", 'SELECT "%s" FROM %s', "-- %s", "$%s$", "\\! %s", "e'%s'"),
    "perl": ("%s", "system('%s')", "$%s = qx{%s}", "<<%s\n%s"),
    "ruby": ("%s", 'system("#{%s}")', "%%w%sa%s"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("language", PLACES)
def test_odd_characters_anywhere_are_read(language, name):
    for place in PLACES[language]:
        for times in (1, 1000):
            text = place.replace("%s", ODD[name] * times).replace("%%", "%")
            effect = read(language, text)
            assert effect.reasons
            assert "rm x" not in text or language != "shell" or is_cautious(effect)


def test_the_shell_grammar_never_sees_a_character_beyond_ascii(monkeypatch):
    """Its scanner asks a table of 256 entries of the C library about any character that follows a brace."""
    seen = []
    real = compiled.parser

    class Watched:
        def __init__(self, package):
            self.parser = real(package)

        def parse(self, piece, **options):
            def watched(start, place):
                given = piece(start, place)
                seen.append(bytes(given))
                return given

            return self.parser.parse(watched, **options)

    monkeypatch.setattr(trees, "parser", Watched)
    text = "echo {\U0010ffff {1..\U000f0000} caf\xe9 \u0663 \ud800"
    source, root = parse(text, lambda _: None)
    assert seen
    assert all(piece.isascii() for piece in seen)
    assert len(seen[0]) == len(source) == root.end_byte
    assert source.decode() == text.replace("\ud800", "?")


def test_a_brace_before_any_character_does_not_end_the_process():
    program = (
        "from safetydrift.effects.languages.shell.grammar import parse\n"
        "for code in (*range(0x80, 0x110000, 0x1001), 0x10FFFF):\n"
        "    for text in ('echo {%s', 'echo {1..%s}', 'for i in {%s..3}; do x; done'):\n"
        "        parse(text.replace('%s', chr(code)), lambda work: None)\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program], check=False, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


# -- syntax trees ------------------------------------------------------------------------------------------


def resident():
    with open("/proc/self/statm") as file:  # noqa: PTH123  # no file of ours
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is told by Linux alone")  # noqa: PTH110
@pytest.mark.parametrize(
    "text",
    [
        "ls -la | grep '%s' && cat a\n" * 300,
        "".join(f"<<E{n} " for n in range(300)) + "%s",
        "( { $( %s" * 3000,
    ],
    ids=["usual", "here-documents", "tangled"],
)
def test_memory_does_not_grow_from_text_to_text(text):
    def some(numbers):
        for number in numbers:
            try:
                parse(text.replace("%s", str(number)), lambda _: None)
            except UnreadableError:
                continue

    some(range(100))
    gc.collect()
    before = resident()
    some(range(100, 300))
    gc.collect()
    assert resident() - before < 2 << 20


def test_a_parser_that_was_stopped_leaves_nothing_behind():
    def tree(source, *, stop):
        return trees.syntax_tree("tree_sitter_bash", source, lambda *_: stop)

    long = b"if (( ;; case " * 2000
    assert tree(long, stop=True) is None
    first, second = tree(b"ls -la", stop=False), tree(b"rm x | sh", stop=False)
    assert first is not None
    assert second is not None
    assert [first.children[0].type, second.children[0].type] == ["command", "pipeline"]
    assert (first.end_byte, second.end_byte) == (6, 9)


def test_nodes_outlive_everything_else():
    root = trees.syntax_tree("tree_sitter_bash", b"a && b || c; " * 500, lambda *_: False)
    assert root is not None
    nodes = [node for child in root.children for node in child.children]
    del root
    gc.collect()
    for _ in range(50):
        trees.syntax_tree("tree_sitter_bash", b"x" * 5000, lambda *_: False)
    assert {node.type for node in nodes} >= {"command", "list", "||"}
    assert all(node.end_byte >= node.start_byte for node in nodes)


def test_a_grammar_that_reads_on_and_on_is_stopped():
    never = lambda *_: False  # noqa: E731
    assert trees.syntax_tree("tree_sitter_javascript", b"/* " * 10_000, never) is None
    assert trees.syntax_tree("tree_sitter_javascript", b"f(a); " * 5000, never) is not None


@pytest.mark.parametrize("text", ["a=&", "a=%", "a=&&&", "[a=&", "a=a=&", "------a=&"])
def test_a_text_full_of_mistakes_is_never_parsed_as_a_whole(text, monkeypatch):
    """One step at the end of such a text takes time and memory with the cube of its length."""
    sizes = []
    real = trees.syntax_tree

    def watched(package, source, stops):
        sizes.append(len(source))
        return real(package, source, stops)

    monkeypatch.setattr(javascript, "syntax_tree", watched)
    effect = read("javascript", text * (javascript.MAX_CODE // len(text)))
    assert max(sizes) <= 1000
    assert effect["tool"] in {"code_exec", "network"}


def test_threads_read_at_the_same_time():
    texts = [f"cat f{n} | grep x{n} > g{n}; rm h{n}\n" * 200 for n in range(8)]
    alone = [read("shell", text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: read("shell", text), texts * 4)) == alone * 4


def test_threads_may_be_the_first_to_need_a_grammar():
    program = (
        "import sys\n"
        "from threading import Barrier, Thread\n"
        "from safetydrift.effects.languages.trees import syntax_tree\n"
        "sys.setswitchinterval(1e-6)\n"
        "found, start = [], Barrier(16)\n"
        "def read():\n"
        "    start.wait()\n"
        "    found.append(syntax_tree('tree_sitter_bash', b'ls', lambda *_: False).end_byte)\n"
        "threads = [Thread(target=read) for _ in range(16)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "assert found == [2] * 16, found\n"
    )
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")


# -- arguments ---------------------------------------------------------------------------------------------


def nested(depth, wrap):
    value: object = "x"
    for _ in range(depth):
        value = wrap(value)
    return value


class Strange:
    """A value that is nothing JSON knows."""


VALUES = {
    "a long text": "x" * LONG,
    "long words": "x " * (LONG // 2),
    "long commas": "," * LONG,
    "long addresses": "a@b.example, " * (LONG // 13),
    "a long address": "http://example.org/?" + "a=b&" * (LONG // 4),
    "long digits": "4" * LONG,
    "long secrets": "password=" * (LONG // 9),
    "a deep list": nested(DEEP, lambda inner: [inner]),
    "a deep table": nested(DEEP, lambda inner: {"url": inner}),
    "JSON of deep lists": "[" * 30_000 + "]" * 30_000,
    "JSON of deep tables": '{"url":' * 9000 + "1" + "}" * 9000,
    "JSON that does not end": '{"url":' * 9000,
    "JSON of a huge number": '{"url": ' + "1" * 60_000 + "}",
    "many items": ["x"] * 1_000_000,
    "many keys": {f"k{n}": "some text" for n in range(300_000)},
    "no number": math.nan,
    "infinite": -math.inf,
    "a huge number": 10**6000,
    "a huge negative number": -(10**6000),
    "bytes": b"rm x",
    "a set": {"rm", "x"},
    "an object": Strange(),
    "lone surrogates": "\ud800" * 1000,
    "NUL": "\0" * 1000,
    "an order of reading": "\u202erm" * 1000,
    "nothing": None,
    "true": True,
}
READING = (
    "bash",
    "ipython",
    "execute_sql",
    "evaluate_script",
    "http_request",
    "browser",
    "Read",
    "send_email",
    "zap",
)
ARGUMENTS = (
    "command",
    "code",
    "query",
    "sql",
    "url",
    "headers",
    "body",
    "method",
    "path",
    "file_path",
    "to",
    "zap",
)


@pytest.mark.parametrize("tool", READING)
@pytest.mark.parametrize("name", VALUES)
def test_an_argument_of_any_size_and_shape_is_answered(tool, name):
    effect = through(ToolCall(tool, dict.fromkeys(ARGUMENTS, VALUES[name])))
    assert is_cautious(effect)


@pytest.mark.parametrize(
    "args",
    [
        {10**6000: "some text"},
        {"a": {10**6000: "some text"}},
        {None: "x", 1: 2, (): "some text", 1.5: [3], b"command": "rm x", Strange(): "some text"},
        {
            "url": {10**6000: "some text"},
            "headers": {10**6000: "x"},
            "body": [{"name": 10**6000, "value": {}}],
        },
        {
            "url": "http://a.example",
            "headers": [{"name": nested(DEEP, lambda inner: [inner])}],
            "body": {(): "x"},
        },
        {math.nan: "some text", True: "some text"},
        {"\ud800": "some text", "\0": "some text", "": "some text", "x" * LONG: "some text"},
        {f"k{n}": "some text" for n in range(300_000)},
        {f"k{n}": f"a@b{n}.example password=hunter2 " * 6000 for n in range(300)},
    ],
    ids=[
        "huge",
        "huge inside",
        "huge in a request",
        "deep in a request",
        "no texts",
        "numbers",
        "odd",
        "many",
        "many long",
    ],
)
@pytest.mark.parametrize("tool", READING)
def test_keys_of_any_shape_and_number_are_answered(tool, args):
    through(ToolCall(tool, args))


@pytest.mark.parametrize("result", [name for name in VALUES if isinstance(VALUES[name], str)])
def test_a_result_of_any_size_and_shape_is_remembered(result):
    through(ToolCall("read_file", {"path": "notes.txt"}), VALUES[result])


def test_the_scanning_of_arguments_has_a_limit_for_all_of_them_together(monkeypatch):
    scanned: list[int] = []
    labeler = Labeler(load_catalogue())
    found_in = Labeler._found_in

    def counted(self, text):
        scanned.append(len(text))
        return found_in(self, text)

    monkeypatch.setattr(Labeler, "_found_in", counted)
    labeler.propose(ToolCall("send_email", {f"k{n}": "x" * 200_000 for n in range(200)}))
    assert 1 << 20 <= sum(scanned) <= 2 << 20
    assert len(scanned) >= 200


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.binary(max_size=9),
        st.text(st.characters(), max_size=30),
        st.text(st.characters(categories=["Cs", "Cc", "Cf", "Zs", "Nd"]), max_size=9),
        st.sampled_from([text for language in OPENED for text in OPENED[language]]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(
            st.one_of(st.text(max_size=5), st.integers(), st.none(), st.floats()), inner, max_size=4
        ),
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(READING),
    st.dictionaries(
        st.one_of(st.sampled_from(ARGUMENTS), st.integers(), st.text(max_size=3)), JSON, max_size=6
    ),
    st.one_of(st.none(), st.text(st.characters(), max_size=200)),
)
def test_no_run_raises(tool, args, result):
    through(ToolCall(tool, args), result)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([language for language in READERS if language != "http"]),
    st.lists(
        st.one_of(
            st.sampled_from([sign for signs in OPENED.values() for sign in signs]),
            st.sampled_from(
                [")", "}", "]", "EOF", "\n", " ", ";", "|", "&&", "rm", "x", "$a", "<<EOF", "eval", "=", "+"]
            ),
            st.text(st.characters(), max_size=4),
        ),
        max_size=60,
    ),
)
def test_no_text_raises_in_any_language(language, parts):
    assert read(language, "".join(parts)).reasons


# -- memory, and the command line --------------------------------------------------------------------------

LIMIT = 1 << 30


def _limited():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count the memory of a process differently")
@pytest.mark.parametrize(
    "tool", ["bash", "ipython", "execute_sql", "evaluate_script", "http_request", "send_email"]
)
def test_a_gigabyte_is_enough_for_any_call(tool):
    program = (
        "import sys\n"
        "from safetydrift.effects import Labeler\n"
        "from safetydrift.effects.history import History\n"
        "from safetydrift.formats.catalogue_file import load_catalogue\n"
        "from safetydrift.trace import Step, ToolCall\n"
        "labeler, history = Labeler(load_catalogue()), History().hears('go')\n"
        "for size in (30_000, 60_000, 10_000_000):\n"
        "    for sign in sys.argv[2:]:\n"
        "        text = sign * (size // len(sign))\n"
        "        names = ('command', 'code', 'query', 'sql', 'url', 'body', 'to')\n"
        "        call = ToolCall(sys.argv[1], dict.fromkeys(names, text))\n"
        "        step = Step(call, text)\n"
        "        history = labeler.read_step(step, history).history\n"
    )
    signs = (
        "(",
        "$(",
        "'",
        "a=$a$a;",
        "{a,b}",
        "[",
        "<<A ",
        "/*",
        "%+; ",
        "a=&",
        "a@b.example ",
        "4111 ",
        "NOT ",
        "http://a/ ",
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tool, *signs],
        preexec_fn=_limited,  # no thread of ours runs here
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr[-500:]) == (0, b"")


def answers(lines):
    done = subprocess.run(
        [sys.executable, "-m", "safetydrift", "explain", "--json"],
        input=lines,
        capture_output=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_command_line_answers_every_line():
    deep = b"[" * DEEP + b"]" * DEEP
    lines = [
        b'{"tool": "bash", "args": {"command": "rm -rf /srv"}}',
        b'{"tool": "bash", "args": {"command": ' + deep + b"}}",
        b'{"tool": "bash", "args": {"command": "ls"}, "result": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"tool": "bash", "args": {"command": "' + b"x" * LONG + b'"}}',
        b'{"tool": "bash", "args": {"command": "\\ud800\\u0000\\u202e"}}',
        b'{"tool": "\\ud800", "args": {"\\udfff": 1e999, "a": ' + b"9" * 5000 + b"}}",
        b'{"tool": "bash", "args": {"command": "\xff\xfe"}}',
        b'{"tool": "bash", "args": {"command": "'
        + b"(" * 60_000
        + b'"}, "task": "'
        + b"a@b.c " * 10_000
        + b'"}',
        b"[" * DEEP,
        b"\x00",
        b'{"tool": 3}',
        b'{"tool": "bash", "args": {"command": "true"}}',
    ]
    told = answers(b"\n".join(lines))
    assert len(told) == len(lines)
    assert told[0]["reversibility"] == "irreversible"
    assert all(answer["reasons"] for answer in told)
    cautious = levels(LABELER.propose(ToolCall("frobnicate")))
    assert all(levels(answer) == cautious for answer in told if "error" in answer)
    assert levels(told[-1]) == levels(LABELER.propose(ToolCall("bash", {"command": "true"})))
