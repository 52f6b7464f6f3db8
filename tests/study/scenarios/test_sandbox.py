"""The sandbox: what its shell does, what it refuses, and that nothing of it is the host."""

import ast
import os
import pickle
import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import safetydrift.study.scenarios
from safetydrift.study.scenarios import database
from safetydrift.study.scenarios.environment import Endpoint, Environment, File, Mail, Page, Trouble
from safetydrift.study.scenarios.tools import TOOLS, use

FILES = {
    "/work/a.csv": "x,1\ny,2\nz,3\n",
    "/work/b.md": "hello\nworld\n",
    "/work/sub/deep.txt": "deep\n",
    "/root/key": "secret\n",
}


def world(**changes):
    files = {
        path: File(path=path, text=text, owner="root" if path == "/root/key" else "agent")
        for path, text in FILES.items()
    }
    files["/root/key"] = File(path="/root/key", text="secret\n", mode="600", owner="root")
    return Environment(
        files=files,
        folders=frozenset(("/work", "/spare")),
        pages=(Page(url="https://shop.example/a", text="a page", title="A shop"),),
        endpoints=(Endpoint(url="https://shop.example/api/*", answer="taken"),),
        inbox=(Mail(id="m1", sender="x@y.example", subject="Hi", body="how are you"),),
        services={"web": "active"},
        database=database.build([("t", ["a INTEGER", "b TEXT"], [[1, "x"], [2, "y"]])]),
        **changes,
    )


def shell(command, environment=None):
    after, text, error = use(environment or world(), "bash", {"command": command}, ["bash"])
    assert error is None
    return after, text


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("ls", "a.csv\nb.md\nsub\n"),
        ("ls -R sub", "deep.txt\n"),
        ("cat a.csv | grep -v x | sort -r | head -n 1", "z,3\n"),
        ("grep -rn hello .", "/work/b.md:1:hello\n"),
        ("grep -c , a.csv", "3\n"),
        ("grep -o '[0-9]' a.csv", "1\n2\n3\n"),
        ("cut -d, -f2 a.csv | tr '\\n' ' '", "1 2 3 "),
        ("tail -n +2 a.csv", "y,2\nz,3\n"),
        ("sed -n 2p b.md", "world\n"),
        ("sed 's/o/0/g;' b.md 2>&1 | head -1", "sed: expression 's/o/0/g;': not available in this sandbox\n"),
        ("sed '/hello/d' b.md", "world\n"),
        ("printf 'b\\na\\nb\\n' | sort | uniq -c", "      1 a\n      2 b\n"),
        ("wc -l a.csv b.md", "3 a.csv\n2 b.md\n"),
        ("find . -name '*.txt'", "./sub/deep.txt\n"),
        ("for f in *.csv *.md; do echo $f; done", "a.csv\nb.md\n"),
        ("if [ -f a.csv ] && [ ! -d a.csv ]; then echo yes; else echo no; fi", "yes\n"),
        ("if [ -f q ]; then echo 1; elif test -d sub; then echo 2; else echo 3; fi", "2\n"),
        ('X=5; Y="$X-${Z:-none}"; echo $Y $(cat b.md | wc -l)', "5-none 2\n"),
        ("echo a > n && echo b >> n && cat n", "a\nb\n"),
        ("cat <<EOF\n$USER here\nEOF", "agent here\n"),
        ("cat <<'EOF'\n$USER here\nEOF", "$USER here\n"),
        ("tr a-z A-Z <<< hi", "HI\n"),
        ("cd sub && pwd; (cd / && pwd); pwd", "/work/sub\n/\n/work/sub\n"),
        ("false || echo other; ! false && echo not", "other\nnot\n"),
        ("ls nope 2>/dev/null || echo gone", "gone\n"),
        ("ls | xargs echo have", "have a.csv b.md sub\n"),
        ("curl -s https://shop.example/a", "a page\n"),
        ("curl -s -d x=1 https://shop.example/api/new", "taken\n"),
        ("echo 'one  two' '$HOME' \"$HOME\" ~/x", "one  two $HOME /home/agent /home/agent/x\n"),
        ("systemctl stop web; systemctl status web", "web.service: inactive\n"),
        (
            "whoami; date; hostname; basename /a/b; dirname /a/b",
            "agent\n2026-03-02 09:00:00\nsandbox\nb\n/a\n",
        ),
        ("diff a.csv a.csv && echo same", "same\n"),
        ("head -n 1 a.csv b.md", "==> a.csv <==\nx,1\n==> b.md <==\nhello\n"),
        ("mkdir -p p/q && touch p/q/f && mv p r && find r", "r/q/f\n"),
        ("cp -r sub copy && rm -r sub && cat copy/deep.txt", "deep\n"),
        ("echo hi | tee t1 t2 && cat t1 t2", "hi\nhi\nhi\n"),
        (
            "ls -l b.md; chmod o-r,u+x b.md 2>/dev/null; chmod 600 b.md; ls -l b.md",
            "-rw-r--r--  agent  12  b.md\n-rw-------  agent  12  b.md\n",
        ),
        ("echo é | wc -c", "3\n"),
        (
            "test -e sub && test -s a.csv && test -n x && test -z '' && test a != b && test a == a && echo all",
            "all\n",
        ),
        ("[ a = b ] || [ x ] && echo so", "so\n"),
        ("printf '%s-%s\\n' a b c", "a-b\nc-\n"),
        ("sort -t, -k2 -n -r a.csv | head -1; printf 'b\\nb\\na\\n' | sort -u", "z,3\na\nb\n"),
        ("printf 'b\\nb\\na\\n' | uniq -d; echo aab | tr -d a; echo aab | tr -s a", "b\nb\nab\n"),
        ("cut -c1 a.csv | xargs; echo a:b | cut -d: -f 2-", "x y z\nb\n"),
        ("find . -type d; find . -name '*.md' -delete; ls", ".\n./sub\na.csv\nsub\n"),
        ("grep -l hello *.md *.csv; grep -q hello b.md && echo yes", "b.md\nyes\n"),
        ("cat -n b.md; ls -F; ls b.md", "     1\thello\n     2\tworld\na.csv\nb.md\nsub/\nb.md\n"),
        ("du -s sub; ls a.csv sub", "5\tsub\na.csv\nsub:\ndeep.txt\n"),
        (
            "curl -T a.csv https://shop.example/api/x; curl -F f=@a.csv https://shop.example/api/x",
            "taken\ntaken\n",
        ),
        ("cat a.csv | curl -s -d @- https://shop.example/api/x", "taken\n"),
        (
            "curl -s -o page https://shop.example/a && cat page; curl -X DELETE https://shop.example/a",
            "a page\nMethod Not Allowed\n",
        ),
        (
            "systemctl; systemctl stop web && systemctl is-active web",
            "web.service  active\nweb.service: inactive\n",
        ),
        (
            "head -n 1 < a.csv; ls nope &> both; cat both; cat none 2> err; cat err",
            (
                "x,1\nls: cannot access 'nope': No such file or directory\n"
                "cat: none: No such file or directory\n"
            ),
        ),
        ("X=$(echo hi); echo ${X} \"\\$X\"; echo -n hi; echo -e 'a\\tb'", "hi $X\nhia\tb\n"),
        (
            "cp a.csv sub && ls sub; mv b.md c.md && cat c.md; rm -f nope && echo ok",
            "a.csv\ndeep.txt\nhello\nworld\nok\n",
        ),
        ("echo a | tee -a b.md | cat; tail -n 1 b.md; tail -1 b.md", "a\na\na\n"),
        ("{ echo one; echo two; } | grep -v one; [[ -d sub ]] && echo dir", "two\ndir\n"),
        ("for f in nothing*; do echo $f; done; echo 'a b' | xargs echo", "nothing*\na b\n"),
        ("sed -e 's/l/L/g' -e '1d' b.md; sed 's/HELLO/x/i' b.md | head -1", "worLd\nx\n"),
        (
            "chmod a=r b.md; chmod +x a.csv; ls -l",
            "-rwxr-xr-x  agent  12  a.csv\n-r--r--r--  agent  12  b.md\ndrwxr-xr-x  -  sub\n",
        ),
    ],
)
def test_commands_do_what_they_do_elsewhere(command, printed):
    assert shell(command)[1] == printed


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("python3 -c 'print(1)'", "command not found"),
        ("cat nope", "No such file or directory"),
        ("cat sub", "Is a directory"),
        ("cat /root/key", "Permission denied"),
        ("rm /root/key", "Permission denied"),
        ("rm sub", "Is a directory"),
        ("sudo cat /root/key", "not in the sudoers file"),
        ("chown root b.md", "Operation not permitted"),
        ("echo x > /none/y", "No such file or directory"),
        ("curl https://elsewhere.example", "Could not resolve host"),
        ("curl -f https://shop.example/none", "404"),
        ("while true; do echo; done", "not available in this sandbox"),
        ("echo $((1+1))", "not available in this sandbox"),
        ("sleep 1 &", "not available in this sandbox"),
        ("echo 'open", "syntax error"),
        ("grep -E '(a+)+$' a.csv", "too costly"),
        ("ls --color", "unrecognized option"),
        ("cp sub x", "omitting directory"),
        ("mv sub sub/x", "are the same file"),
        ("systemctl start nothing", "could not be found"),
        ("systemctl dance web", "Unknown operation"),
        ("which ls nothing", "/usr/bin/ls"),
        ("test a b c d", "not available in this sandbox"),
        ("grep", "usage"),
        ("grep '(' a.csv", "invalid pattern"),
        ("grep x < nope", "No such file"),
        ("cut -f 0x a.csv", "numbered from 1"),
        ("head -n x a.csv", "invalid number"),
        ("tr a", "missing operand"),
        ("cp a.csv", "missing destination"),
        ("mv nope x", "cannot stat"),
        ("chmod 9 a.csv", "invalid mode"),
        ("chmod 600 nope", "cannot access"),
        ("mkdir a.csv", "File exists"),
        ("cd a.csv", "No such file"),
        ("find . -exec rm", "unknown predicate"),
        ("find nope", "No such file"),
        ("diff a.csv", "missing operand"),
        ("diff a.csv b.md", "> hello"),
        ("curl", "no URL"),
        ("xargs -0 rm", "invalid option"),
        ("ls -Z", "invalid option"),
        ("sed 's/a/\\9/' a.csv; false", "[exit code"),
        ("echo ${X:?no}", "not available in this sandbox"),
        ("echo ${#X}", "bad substitution"),
        ("A=(1 2); false", "[exit code"),
    ],
)
def test_what_it_cannot_do_it_says(command, told):
    after, text = shell(command)
    assert told in text
    assert "[exit code" in text
    assert after.files == world().files


def test_whoever_may_become_root_can():
    assert shell("sudo cat /root/key; whoami", world(sudo=True))[1] == "secret\nagent\n"
    after, _ = shell("sudo chown agent /root/key && cat /root/key", world(sudo=True))
    assert after.files["/root/key"].owner == "agent"


def test_an_environment_is_never_changed():
    before = world()
    shell("rm -rf /work/*; curl -s -d x https://shop.example/api/y; echo a > /spare/b", before)
    assert before == world()
    assert pickle.loads(pickle.dumps(before)) == before  # noqa: S301  # our own


def test_chance_comes_from_the_seed():
    one, other = (
        shell("echo $RANDOM; seq 2>/dev/null; cat a.csv | shuf", world(seed=seed))[1] for seed in (1, 2)
    )
    assert one == shell("echo $RANDOM; seq 2>/dev/null; cat a.csv | shuf", world(seed=1))[1]
    assert one != other


@given(st.lists(st.sampled_from(["..", ".", "work", "~", "etc", "a.csv", "//", "root"]), max_size=8))
def test_no_path_leads_above_the_root(parts):
    path = world().path("/".join(parts))
    assert path.startswith("/")
    assert ".." not in path.split("/")
    assert not path.startswith("//")


WORDS = (
    "cat", "a.csv", "|", ">", ">>", "&&", "||", ";", "(", ")", "{", "}", "$X", "$(", "`", "'", '"', "<<EOF",
    "\n", "for", "f", "in", "*", "do", "done", "if", "then", "fi", "rm", "-rf", "/", "~", "[", "]", "-n", "!", "&",
    "x=1", "sed", "s/a/b/", "grep", "-E", ".*", "xargs",
)  # fmt: skip


@given(st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_no_command_line_breaks_the_shell(command):
    before = world()
    after, text, error = use(before, "bash", {"command": command}, ["bash"])
    assert error is None
    assert isinstance(text, str)
    assert isinstance(after, Environment)


@given(
    st.sampled_from(sorted(TOOLS)),
    st.dictionaries(
        st.text(max_size=8) | st.sampled_from(["path", "sql", "to", "url", "body", "id"]),
        st.none() | st.integers() | st.text(max_size=20) | st.lists(st.text(max_size=5), max_size=3),
        max_size=4,
    ),
)
def test_no_arguments_break_a_tool(name, args):
    after, text, error = use(world(), name, args, list(TOOLS))
    assert (error is None) or (text == "" and after == world())


def test_a_tool_that_is_not_offered_is_not_there():
    error = use(world(), "bash", {"command": "ls"}, ["read_file"])[2]
    assert error is not None
    assert "there is no tool 'bash'" in error


# -- the host -----------------------------------------------------------------------------------------------------

HOST = {
    "asyncio", "builtins", "ctypes", "glob", "http", "importlib", "io", "multiprocessing", "os", "shutil", "signal",
    "socket", "subprocess", "sys", "tempfile", "threading", "urllib.request",
}  # fmt: skip
HOME = Path(safetydrift.study.scenarios.__file__).parent
SANDBOX = [
    *(HOME / f"{name}.py" for name in ("environment", "database", "shell", "tools", "checks")),
    *sorted((HOME / "programs").glob("*.py")),
]


@pytest.mark.parametrize("module", SANDBOX, ids=lambda path: path.stem)
def test_no_module_of_the_sandbox_can_ask_for_the_host(module):
    tree = ast.parse(module.read_text("utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not imported & HOST
    assert not called & {"open", "eval", "exec", "compile", "__import__", "input"}


def test_nothing_is_opened_started_or_connected(monkeypatch, tmp_path):
    shell("ls; cat a.csv")  # whatever is imported when first needed
    use(world(), "execute_sql", {"sql": "SELECT 1"}, ["execute_sql"])

    def refuse(*args, **kwargs):
        raise AssertionError(args)

    monkeypatch.chdir(tmp_path)
    for owner, name in (
        (subprocess, "Popen"),
        (socket, "socket"),
        (os, "system"),
        (os, "open"),
        (Path, "open"),
    ):
        monkeypatch.setattr(owner, name, refuse)
    monkeypatch.setattr("builtins.open", refuse)
    for command in (
        "cat /etc/passwd",
        "curl http://localhost:1",
        "ls /",
        "echo x > /tmp/here",
        "find /",
        "rm -rf /",
        "cp a.csv ../../x",
    ):
        shell(command)
    for sql in (
        "ATTACH 'x.db' AS x",
        "VACUUM INTO 'y.db'",
        "PRAGMA journal_mode = wal",
        "CREATE TEMP TABLE z (a)",
    ):
        use(world(), "execute_sql", {"sql": sql}, ["execute_sql"])
    assert list(tmp_path.iterdir()) == []


# -- SQL ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH 'x.db' AS x",
        "VACUUM INTO 'y.db'",
        "PRAGMA journal_mode = wal",
        "SELECT load_extension('x')",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
        "SELECT zeroblob(1000000)",
        "SELECT 1; SELECT 2",
        "SELECT",
        "SELECT " + "1," * 20_000 + "1",
    ],
)
def test_sql_that_would_reach_out_or_never_end_is_refused(statement):
    with pytest.raises(Trouble):
        database.execute(world().database, statement)


def test_sql_knows_one_moment_and_repeats_its_chance():
    asked = "SELECT random(), date('now'), datetime(), strftime('%Y', 'now'), CURRENT_TIMESTAMP, CURRENT_DATE"
    rows = database.execute(b"", asked, seed=4)[2]
    assert rows == database.execute(b"", asked, seed=4)[2]
    assert rows != database.execute(b"", asked, seed=5)[2]
    assert rows[0][1:4] == ("2026-03-02", "2026-03-02 09:00:00", "2026")


def test_a_statement_makes_another_database_and_leaves_the_old_one():
    old = world().database
    new, told, _ = database.execute(old, "DELETE FROM t WHERE a = 1")
    assert told == "1 row affected"
    assert database.execute(new, "SELECT count(*) FROM t")[2] == [(1,)]
    assert database.execute(old, "SELECT count(*) FROM t")[2] == [(2,)]


def test_long_answers_are_cut_and_said_to_be():
    many = database.build([("t", ["a"], [[n] for n in range(500)])])
    assert "more than 200 rows" in database.execute(many, "SELECT a FROM t")[1]
    assert "no rows" in database.execute(many, "SELECT a FROM t WHERE a < 0")[1]


def test_tables_that_make_no_database_are_refused():
    with pytest.raises(ValueError, match="do not make a database"):
        database.build([("t", ["a INTEGER", "a TEXT"], [])])


# -- the other tools ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [
        ("list_emails", {}, "[m1]  x@y.example: Hi"),
        ("list_emails", {"folder": "archive"}, "no mail"),
        ("search_emails", {"query": "how YOU"}, "[m1]  x@y.example: Hi"),
        ("read_email", {"id": "m1"}, "From: x@y.example\nTo: \nSubject: Hi\nDate: \n\nhow are you"),
        ("forward_email", {"id": "m1", "to": ["a@b.example"]}, "forwarded to ['a@b.example']"),
        ("delete_email", {"id": "m1"}, "deleted m1"),
        ("list_directory", {"path": "/work"}, "a.csv\nb.md\nsub/"),
        ("grep_search", {"pattern": "hel+o", "path": "/work"}, "/work/b.md:1: hello"),
        ("grep_search", {"pattern": "nothing", "path": "/work"}, "no match"),
        ("list_events", {}, "nothing"),
        ("web_search", {"query": "shop"}, "A shop <https://shop.example/a>"),
        ("web_search", {"query": "zzz"}, "no results"),
        ("get_balance", {}, "0.00"),
        ("get_transactions", {}, "none"),
        ("send_money", {"recipient": "A", "amount": 5}, "paid 5.00 to A"),
        ("list_tables", {}, 'name | sql\nt | CREATE TABLE "t" (a INTEGER, b TEXT)'),
    ],
)
def test_tools_do_what_they_say(name, args, told):
    after, text, error = use(world(), name, args, list(TOOLS))
    assert (text, error) == (told, None)
    assert (after == world()) == (name not in {"forward_email", "delete_email", "send_money"})


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [
        ("read_email", {"id": "m9"}, "there is no mail 'm9'"),
        ("delete_event", {"id": "e9"}, "there is no event 'e9'"),
        ("send_money", {"recipient": "A", "amount": -5}, "not one that can be paid"),
        ("send_money", {"recipient": "A", "amount": True}, "of the type number"),
        ("send_email", {"to": [], "subject": "", "body": ""}, "there is no recipient"),
        ("send_email", {"to": [1], "subject": "", "body": ""}, "a list of texts"),
        ("edit_file", {"path": "a.csv", "old_text": ",", "new_text": ""}, "stands 3 times"),
        ("list_directory", {"path": "/none"}, "no such folder"),
        ("fetch_url", {"url": "https://shop.example/b"}, "HTTP 404"),
        ("fetch_url", {"url": "http://["}, "Could not resolve host"),
        ("read_file", {}, "'path' is missing"),
        ("read_file", {"path": "a", "q": 1}, "no argument 'q'"),
        ("write_file", {"path": "a.csv", "content": "x" * 70_000}, "too long"),
        ("write_file", {"path": "/work", "content": "x"}, "Is a directory"),
        ("write_file", {"path": "/root/key", "content": "x"}, "Permission denied"),
    ],
)
def test_tools_say_what_is_wrong_and_change_nothing(name, args, told):
    after, text, error = use(world(), name, args, list(TOOLS))
    assert error is not None
    assert told in error
    assert (after, text) == (world(), "")
