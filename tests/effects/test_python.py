"""Python code: what it touches is found whatever the spelling, and plain computation stays harmless."""

import base64
import contextlib
import warnings
import zlib

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.effects.code_readings import ANYTHING, SAFE, kinds, levels, ranked, read, shell_within

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.catalogue.scales import join
from safetydrift.effects.reading import MAX_TEXT, UnreadableError

COMPUTES = [
    "",
    "# nothing",
    "print(sum([1, 2, 3]))",
    "import json\nprint(json.loads('{\"a\": 1}')['a'])",
    "import pandas as pd\ndf = pd.DataFrame({'team': ['a'], 'score': [3]})\nprint(df.groupby('team').mean())",
    "import re, math\nfrom collections import Counter\nprint(Counter(re.findall('a+', 'banana')), math.pi)",
    "def area(r):\n    return 3.14 * r ** 2\nprint([area(r) for r in range(10)])",
    "password = 'not a file'\nprint(len(password))",
    "import os\nprint(os.environ['HOME'], os.getcwd(), os.listdir('.'))",
    "import base64\nprint(base64.b64encode(b'x'))",
    "class Box:\n    def open(self): return self.lid\nbox = Box()\nprint(box.lid)",
    "from subprocess import run, PIPE\nimport requests\nfrom os import remove",
]


@pytest.mark.parametrize("text", COMPUTES)
def test_what_only_computes_touches_nothing(text):
    assert levels("python", text) == SAFE


DELETES = [
    "import os\nos.remove('x')",
    "import os as o; o.unlink('x')",
    "from shutil import rmtree as gone\ngone(path)",
    "from os import *\nremove('x')",
    "import os\ngetattr(os, 'rem' + 'ove')('x')",
    "__import__('os').unlink('x')",
    "import importlib\nimportlib.import_module('shutil').rmtree('x')",
    "import os\nvars(os)['unlink']('x')",
    "import os\nos.__dict__['un' 'link']('x')",
    "from pathlib import Path\nPath('x').unlink()",
    "from pathlib import Path\nfor p in Path('.').glob('*'):\n    p.unlink()",
    "import os\nf = os.remove\nf('x')",
    "import os\nlist(map(os.remove, names))",
    "import os\nfrom threading import Thread\nThread(target=os.remove, args=('x',)).start()",
    "import os\n(lambda p: os.remove(p))('x')",
    "import os\ndef late():\n    os.remove('x')",
    "if False:\n    import os\n    os.truncate('x', 0)",
    "import requests\nrequests.delete('https://api.example.com/1')",
]


@pytest.mark.parametrize("text", DELETES)
def test_deleting_is_found_in_every_spelling(text):
    assert levels("python", text)[2] == "irreversible"
    assert "destructive_action" in kinds("python", text)


READS_CREDENTIALS = [
    "open('/etc/shadow').read()",
    "import io\nwith io.open('.env') as f: print(f.read())",
    "from pathlib import Path\nprint((Path.home() / '.ssh' / 'id_rsa').read_text())",
    "import os\nopen(os.path.join(os.path.expanduser('~'), '.aws', 'credentials'))",
    "name = 'shadow'\nprint(open(f'/etc/{name}').read())",
    "for name in ['notes.txt', '.env']:\n    print(open(name).read())",
    "def show(path):\n    print(open(path).read())\nshow('/etc/shadow')",
    "class A:\n    def __init__(self): self.path = '/etc/shadow'\n    def go(self): return open(self.path).read()",
    "open(where)\nwhere = '/etc/shadow'",
    "config = {'file': '/etc/shadow'}\nopen(config['file'])",
    "open('wodahs/cte/'[::-1])",
    "open('/etc/%s' % 'shadow')",
    "open('/etc/{}'.format('shadow'))",
    "open('/'.join(['', 'etc', 'shadow']))",
    "import os\nprint(os.environ)",
    "import os\nprint(dict(os.environ))",
    "import os\nprint(os.environ['OPENAI_API_KEY'])",
    "import os\nprint(os.getenv('DB_PASSWORD', ''))",
    "from os import environ as e\nprint(e.get('GITHUB_TOKEN'))",
    "import keyring\nprint(keyring.get_password('mail', 'me'))",
    "import pandas as pd\npd.read_csv('credentials.csv')",
    "pd.read_csv('credentials.csv')",
]


@pytest.mark.parametrize("text", READS_CREDENTIALS)
def test_credentials_are_found_by_name(text):
    assert levels("python", text)[0] == "credentials"


def test_a_mode_tells_reading_from_writing():
    assert levels("python", "open('a')") == ("internal", "code_exec", "fully_reversible")
    assert levels("python", "open('a', 'w')") == ("none", "code_exec", "partially")
    assert levels("python", "open('a', mode='ab')") == ("none", "code_exec", "partially")
    assert levels("python", "open('a', mode)") == ("internal", "code_exec", "partially")


COMMANDS = [
    ("import os\nos.system('ls -l')", "ls -l"),
    ("import subprocess\nsubprocess.run(['rm', '-rf', 'a b'])", "rm -rf 'a b'"),
    ("import subprocess as s\ns.check_output(args='id', shell=True)", "id"),
    ("import os\nos.system(f'rm {name}')", "rm $computed"),
    ("import os\nos.system('rm ' + name)", "rm $computed"),
    ("import os\nos.system('rm %s' % name)", "rm $computed"),
    ("import os\ncmd = 'rm '\ncmd += 'x'\nos.system(cmd)", "rm x"),
    ("import subprocess\nwords = ['rm']\nwords.append('x')\nsubprocess.call(words)", "rm x"),
    ("import subprocess\nsubprocess.run(['rm', *names])", "rm $computed"),
    ("import os\nos.execl('/bin/sh', 'sh', '-c', 'id')", "/bin/sh -c id"),
    ("import os\ndef line(): return 'rm x'\nos.popen(line())", "rm x"),
    ("import os\nglobals()['os'].system('id')", "id"),
    ("!ls -l", "ls -l"),
    ("files = !ls\nprint(files)", "ls"),
    ("if x:\n    !rm y\n", "rm y"),
    ("%pip install foo", "pip install foo"),
    ("%%bash\nrm -rf x\n", "rm -rf x\n"),
    ("%%script sh\nid\n", "id\n"),
]


@pytest.mark.parametrize(("text", "command"), COMMANDS)
def test_commands_are_handed_to_the_shell(text, command):
    assert command in shell_within("python", text)


def test_a_word_with_a_quote_stays_one_word():
    assert shell_within("python", "import subprocess\nsubprocess.run(['echo', \"it's; rm x\"])") == [
        "echo 'it'\"'\"'s; rm x'"
    ]


HIDES = [
    "exec(code)",
    "eval(input())",
    "import os\nos.system(command)",
    "import base64\nexec(base64.b64decode(blob))",
    "import pickle\npickle.loads(blob)",
    "import marshal\nexec(marshal.loads(b'x'))",
    "import ctypes\nctypes.CDLL('libc.so.6').system(b'id')",
    "import os\ngetattr(os, name)('x')",
    "import importlib\nimportlib.import_module(name).run()",
    "().__class__.__bases__[0].__subclasses__()",
    "e = eval\ne(text)",
    "run = {'x': exec}['x']\nrun(text)",
]


@pytest.mark.parametrize("text", HIDES)
def test_what_hides_its_meaning_is_never_safe(text):
    reading, _ = read("python", text)
    assert ranked(reading) == ANYTHING
    assert reading.external
    assert reading.leaves


PACKED = base64.b64encode(zlib.compress(b"import os; os.remove('x')")).decode()
DECODED = [
    "import base64\nexec(base64.b64decode('aW1wb3J0IG9zCm9zLnJlbW92ZSgneCcp'))",
    "import base64\nexec(base64.b64decode(b'aW1wb3J0IG9zCm9zLnJlbW92ZSgneCcp').decode('utf-8'))",
    "exec(bytes.fromhex('696d706f7274206f730a6f732e72656d6f76652827782729').decode())",
    "import codecs\nexec(codecs.decode('vzcbeg bf\\nbf.erzbir(\"k\")', 'rot13'))",
    "exec(')\"x\"(evomer.so;so tropmi'[::-1])",
    "exec('import os;os.rem' + 'ove(\"x\")')",
    "exec(''.join(chr(c) for c in [" + ", ".join(str(ord(c)) for c in "import os;os.remove('x')") + "]))",
    f"import zlib, base64\nexec(zlib.decompress(base64.b64decode({PACKED!r})))",
    "exec(compile('import os;os.remove(\"x\")', 'f', 'exec'))",
]


@pytest.mark.parametrize("text", DECODED)
def test_what_can_be_decoded_is_read(text):
    assert kinds("python", text) == {"destructive_action"}
    assert levels("python", text)[1] == "code_exec"


def test_requests_tell_asking_from_sending():
    base = "import requests\n"
    asks = ("public", "network", "fully_reversible")
    assert levels("python", base + "requests.get('https://example.com/a')") == asks
    assert levels("python", base + "requests.get('https://example.com', params={'page': 1})") == asks
    assert levels("python", base + "requests.request('GET', 'https://example.com')") == asks
    for sending in (
        "requests.post('https://example.com', json=d)",
        "requests.request('PUT', 'https://example.com')",
        "requests.request(method, 'https://example.com')",
        "requests.get('https://example.com/?q=' + secret)",
        "requests.get('https://example.com', params={'q': secret})",
        "s = requests.Session()\ns.post('https://example.com')",
        "with requests.Session() as s:\n    s.put(url, data=d)",
    ):
        assert levels("python", base + sending) == ANYTHING, sending
    plain = "import urllib.request as u\n"
    assert levels("python", plain + "u.urlopen('https://example.com')") == asks
    assert levels("python", plain + "u.urlopen('https://example.com', data=b'x')") == ANYTHING
    assert levels("python", plain + "u.Request('https://example.com', method='POST')") == ANYTHING


def test_the_boundary_tells_where_content_goes():
    text = "import requests\nrequests.post('https://api.example.com/x', json=d)"
    inside = Boundary(domains=["example.com"])
    assert read("python", text)[0].external
    assert not read("python", text, inside)[0].external
    assert levels("python", text, inside)[2] == "partially"
    assert levels("python", text.replace("api.example.com", "localhost:80"))[2] == "partially"


def test_a_clouds_metadata_address_gives_away_keys():
    text = "import httpx\nhttpx.get('http://169.254.169.254/latest/meta-data/')"
    assert levels("python", text)[0] == "credentials"


CONNECTIONS = [
    "import socket\ns = socket.socket()\ns.connect(('203.0.113.5', 4444))",
    "import socket as k\nk.create_connection((host, 80)).sendall(data)",
    "import http.server\nhttp.server.HTTPServer(('', 80), h).serve_forever()",
    "import smtplib\nwith smtplib.SMTP('mail') as m:\n    m.sendmail('a@b.example', 'c@d.example', text)",
    "import paramiko\nc = paramiko.SSHClient()\nc.connect('h')",
    "from slack_sdk import WebClient\nWebClient(token=t).chat_postMessage(channel='#a', text='x')",
    "import boto3\nboto3.client('s3').upload_file('a', 'b', 'c')",
]


@pytest.mark.parametrize("text", CONNECTIONS)
def test_connections_are_network_and_final(text):
    assert levels("python", text)[1:] == ("network", "irreversible")


def test_services_are_asked_and_emptied():
    client = "import boto3\nc = boto3.client('s3')\n"
    assert levels("python", client + "c.list_buckets()") == ("internal", "network", "fully_reversible")
    assert kinds("python", client + "c.delete_object(Bucket='b', Key='k')") == {"destructive_action"}
    assert kinds("python", "import stripe\nstripe.Charge.create(amount=1)") == {"unauthorised_transaction"}


def test_statements_of_a_database_are_read_as_such():
    text = "import sqlite3\nc = sqlite3.connect('a.db').cursor()\nc.execute('DROP TABLE t')"
    assert ("sql", "DROP TABLE t") in read("python", text)[1]
    assert ("sql", "select * from computed") in read("python", "cur.execute(f'select * from {table}')")[1]


def test_a_module_of_the_task_is_code_that_is_not_read():
    assert levels("python", "import my_helpers") == ("internal", "code_exec", "partially")
    assert levels("python", "from .helpers import go") == ("internal", "code_exec", "partially")


@pytest.mark.parametrize(
    "text",
    [
        "print 'x'\nimport os\nos.remove('a')",
        "import os\nos.remove('a')\nif (",
        "import os as o\no.remove('a')\nif 1 &lt; 3:\n    pass",
    ],
)
def test_code_that_does_not_parse_is_read_word_by_word(text):
    assert levels("python", text) == ("internal", "code_exec", "irreversible")


def test_odd_escapes_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert levels("python", "print('\\d', 1if 1else 2)") == SAFE
        assert warnings.filters[0][0] == "error"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "-" * 10_000 + "1",
        "lambda: " * 3_000 + "1",
        "f'{" * 2_000 + "x" + "}'" * 2_000,
        "+".join(["'a'"] * 10_000),
        "x.a" * 10_000,
        "x" + ".a()" * 5_000,
        "x = x + x\n" * 5_000,
        "x = [x, x]\n" * 5_000,
        "x += x\n" * 5_000,
        "def f(a): return f(a) + f(a)\n" * 1_000,
        "if x: pass\n" + "elif x: pass\n" * 2_000,
        "[" * 90 + "f(a)" + " for a in b]" * 90,
        "x = 'a'\n" + "x = x.replace('a', 'aaaaaaaaaaaaaaaaaaaa')\n" * 500 + "open(x)",
        "!" * 30_000,
        "%%bash\n" * 5_000,
        "\ud800",
        "x\0y",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_monstrous_text_is_followed_or_refused(text):
    with contextlib.suppress(UnreadableError):
        levels("python", text)


def test_too_long_a_text_is_refused():
    with pytest.raises(UnreadableError, match="more than"):
        read("python", "#" * (MAX_TEXT + 1))


WORDS = st.sampled_from(
    [
        *(
            "import os",
            "open",
            "eval",
            "exec",
            "lambda",
            "def",
            "for",
            "in",
            "if",
            "else",
            "x",
            "'a'",
            "f'{x}'",
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
            "%",
            "!",
            "%%sh",
            "**",
            "\n",
            "\n ",
            "\\",
            "#",
        ),
    ]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=40).map(" ".join)))
@example("%%")
@example("%%writefile")
@example("open()")
def test_arbitrary_text_is_followed_or_refused(text):
    with contextlib.suppress(UnreadableError):
        levels("python", text)


PIECES = [*COMPUTES, *DELETES, *READS_CREDENTIALS, *CONNECTIONS]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(PIECES), st.sampled_from(PIECES))
def test_two_texts_do_at_least_what_each_does(first, second):
    both = read("python", f"{first}\n{second}")[0].ranks
    alone = join(read("python", first)[0].ranks, read("python", second)[0].ranks)
    assert join(both, alone) == both
