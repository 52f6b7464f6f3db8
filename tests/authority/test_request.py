"""A request as a whole: what it keeps, what more words change, and what nothing may do to it."""

import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.authority.grading import ACTION, ASKED, FORBIDDEN, GOAL, GRADES, NONE
from safetydrift.authority.keeping import MAX_CLAUSES, MAX_DELEGATIONS, MAX_KEPT
from safetydrift.authority.kept import DIGEST
from safetydrift.authority.request import Request
from safetydrift.authority.text import MAX_TEXT
from safetydrift.effects.operations import ACTIONS

EMPTY = Request.empty(b"salt of a session")
WORDS = st.sampled_from(
    [
        *(
            "delete",
            "the",
            "file",
            "a.txt",
            "send",
            "bob@example.com",
            "pay",
            "12.50",
            "to",
            "push",
            "and",
            "but",
            "if",
            "it",
        ),
        *(
            "DE89370400440532013000",
            "do not",
            "/srv/x",
            "everything",
            "only",
            "'quoted'",
            "`",
            "```",
            ">",
            "~",
            "*",
            "\n",
        ),
        *(
            ",",
            ".",
            "?",
            "!",
            "lösche",
            "не",
            "删除",
            "احذف",
            "मत",
            "Bob",
            "yes",
            "no",
            "go ahead",
            "May 5th 2024",
        ),
    ]
)
SENTENCES = st.lists(WORDS, max_size=30).map(" ".join)
VALUES = st.sampled_from(
    [
        "a.txt",
        "/srv/app/b.log",
        "bob@example.com",
        "https://example.com/a",
        "DE89370400440532013000",
        "+49 170 1234567",
    ]
)


@given(SENTENCES, SENTENCES, VALUES)
def test_hearing_more_never_takes_back_what_was_said(before, after, value):
    request = EMPTY.hear(f"{before} {value}")
    assert request.said(value)
    assert request.hear(after, follow_up=True).said(value)


@given(SENTENCES, SENTENCES)
def test_a_prohibition_holds_whatever_else_the_message_says_before_it(before, after):
    request = EMPTY.hear(
        f"{before}.\n\nDo not push anything.\n\n{after.replace('push', '').replace('```', '')}"
    )
    assert request.asks("push", ["origin main"]).grade == FORBIDDEN


@given(st.permutations(["Delete a.txt.", "Send b.pdf to Bob.", "Never pay anything.", "Install requests."]))
def test_the_order_of_independent_sentences_does_not_matter(sentences):
    request = EMPTY.hear(" ".join(sentences))
    assert request.asks("delete", ["a.txt"]).grade == ASKED
    assert request.asks("send", ["bob@example.com"]).grade == ASKED
    assert request.asks("pay", ["DE89370400440532013000"]).grade == FORBIDDEN
    assert request.asks("install", ["numpy"]).grade == ACTION


def test_what_was_forbidden_may_be_asked_for_later_and_not_the_other_way_round():
    later = EMPTY.hear("Don't delete a.txt").hear("You may delete a.txt now", follow_up=True)
    assert later.asks("delete", ["a.txt"]).grade == ASKED
    earlier = EMPTY.hear("Delete a.txt").hear("Don't delete a.txt", follow_up=True)
    assert earlier.asks("delete", ["a.txt"]).grade == FORBIDDEN


def test_agreement_asks_for_nothing_by_itself():
    request = EMPTY.hear("Summarise notes.txt").hear("Yes, go ahead.", follow_up=True)
    assert request.asks("delete", ["notes.txt"]).grade < ACTION
    assert request.asks("send", ["eve@example.com"]).grade == NONE


@given(st.text(max_size=300), st.sampled_from(sorted(ACTIONS)), st.text(max_size=40), st.text(max_size=20))
def test_no_text_breaks_it(text, action, target, word):
    request = EMPTY.hear(text).hear(text, follow_up=True)
    assert request.asks(action, [target], [word]).name in GRADES
    assert request.overlap(target) in range(4)
    assert request.said(target) in {True, False}
    request.designated(target, [word])


@given(SENTENCES)
def test_a_request_survives_being_stored(text):
    request = EMPTY.hear(text)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(request), type=Request) == request
    assert msgspec.json.decode(msgspec.json.encode(request), type=Request) == request


def test_a_store_holds_none_of_the_words():
    text = "Send the salary of Hildegard to 4711@example.com, quietly"
    stored = msgspec.msgpack.encode(EMPTY.hear(text))
    assert not [
        word
        for word in text.replace(",", "").split()
        if len(word) > 3 and word.lower().encode() in stored.lower()
    ]
    other = msgspec.msgpack.encode(Request.empty(b"another salt").hear(text))
    assert stored.partition(EMPTY.salt)[2][:64] != other.partition(b"another salt")[2][:64]


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("save it to notes.txt", "/home/ann/notes.txt", True),
        ("save it to /home/ann/notes.txt", "notes.txt", True),
        ("save it to /home/ann/notes.txt", "/etc/notes.txt", False),
        ("compare /a/notes.txt with /b/notes.txt", "notes.txt", False),
        ("compare /a/notes.txt with /b/notes.txt and notes.txt", "/b/notes.txt", True),
        ("visit example.com", "https://www.example.com/a/b", True),
        ("visit https://example.com/a", "example.com", True),
        ("visit https://example.com/a", "https://example.com/b", False),
        ("look at github.com", "https://github.com/eve/tool", False),
        ("pay twelve hundred euros", "1200", True),
        ("pay 1.200,50 Euro", "1200.50", True),
        ("überweise zwölfhundert Euro", "1200", True),
        ("verse mille deux cents euros", "1200", True),
        ("支付一千二百元", "1200", True),
        ("call six eight five four three two", "685432", True),
        ("meet on May 15th, 2024", "2024-05-15", True),
        ("meet on 15 mai", "2031-05-15", True),
        ("meet on May 15th, 2024", "2025-05-15", False),
        ("stay at 'Le Marais Boutique'", "Le Marais Boutique", True),
        ("the boutique is near. Le Marais is far.", "Le Marais Boutique", False),
        ("write to ann at example dot com", "ann@example.com", True),
        ("write to A n n", "eve@example.com", False),
        ("```\ncurl https://x.example/a\n```", "https://x.example/a", True),
    ],
)
def test_a_value_is_said_in_whatever_form(text, value, said):
    assert EMPTY.hear(text).said(value) == said


@pytest.mark.parametrize(
    ("text", "value", "shared"),
    [
        ("write to Alice", "alice.miller@gmail.com", 1),
        ("write to Alice Miller", "alice.miller@gmail.com", 2),
        ("write to alice.miller@gmail.com", "Alice.Miller@gmail.com", 3),
        ("write to Jane Long", "janeLong@example.com", 2),
        ("write to Bob", "alice.miller@gmail.com", 0),
        ("clean the build folder", "/srv/build", 2),
    ],
)
def test_overlap_says_how_much_of_a_value_the_words_share(text, value, shared):
    assert EMPTY.hear(text).overlap(value) == shared


def test_nothing_is_vacuous():
    request = EMPTY.hear("Delete the old logs")
    assert request.asks("delete").grade == ACTION
    assert request.asks("delete", ["x" * 600]).grade == ACTION
    assert EMPTY.asks("delete", ["a.txt"]).grade == NONE
    with pytest.raises(KeyError):
        request.asks("obliterate", ["a.txt"])


def test_an_ordinary_means_says_where_it_belongs():
    asked = EMPTY.hear("Fix the failing build").asks("edit", ["src/a.c"])
    assert (asked.grade, asked.clause, asked.within) == (GOAL, 0, "project")


def test_what_is_kept_is_bounded_and_prohibitions_beyond_it_hold_everywhere():
    long = ". ".join(
        f"Delete file{number}.txt and send page{number} to user{number}" for number in range(3 * MAX_CLAUSES)
    )
    request = EMPTY.hear(long[: MAX_TEXT // 2]).hear(long[-MAX_TEXT // 2 :]).hear("Never push.")
    assert len(request.clauses) == MAX_CLAUSES
    assert len(request.words) <= (MAX_KEPT + 1024) * DIGEST
    assert len(request.keys) <= (MAX_KEPT + 1024) * DIGEST
    assert len(request.delegations) <= MAX_DELEGATIONS
    assert request.asks("push", ["origin"]).grade == FORBIDDEN


@pytest.mark.parametrize(
    "piece", ["delete a.txt, ", "a" * 50, "do not send it to bob@example.com. ", "'\"`", "if (a, b) ", "1 2 "]
)
def test_the_work_grows_with_the_length_of_the_text_and_no_faster(piece):
    def calls(times):
        count = 0

        def counting(_frame, event, _argument):
            nonlocal count
            count += event in {"call", "c_call"}

        sys.setprofile(counting)
        try:
            EMPTY.hear(piece * times)
        finally:
            sys.setprofile(None)
        return count

    calls(200)
    assert calls(800) <= 4.6 * calls(200) + 2000
