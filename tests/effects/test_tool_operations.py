"""What calls of tools do to the values of their arguments: listed tools, names nobody listed, values deep in tables."""

import tomllib
from pathlib import Path

import pytest

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.catalogue.harms import CERTAINTIES
from safetydrift.effects.labeler import Labeler
from safetydrift.effects.operations import MAX_CARRIED, MAX_OPERATIONS, MAX_TARGET
from safetydrift.effects.tool_operations import MAX_VALUES
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.trace import ToolCall

CATALOGUE = load_catalogue()
LABELER = Labeler(CATALOGUE)
CALLS = tomllib.loads((Path(__file__).parent / "operations" / "tools.toml").read_text())


def operations(tool, args, labeler=LABELER):
    return labeler.propose(ToolCall(tool, args)).operations


def calls(kind):
    return [pytest.param(case, id=f"{case['tool']}-{at}") for at, case in enumerate(CALLS[kind])]


def certainty(found, harm):
    return max((one.certainty for one in found if one.harm == harm), default=0)


@pytest.mark.parametrize("case", calls("harmful"))
def test_a_call_has_the_harm_that_it_is_listed_for(case):
    found = operations(case["tool"], case["args"])
    assert certainty(found, case["harm"]) >= CERTAINTIES[case["least"]], found


@pytest.mark.parametrize("case", calls("harmless"))
def test_a_call_of_every_day_has_no_likely_harm(case):
    found = operations(case["tool"], case["args"])
    assert max(one.certainty for one in found) <= CERTAINTIES["possible"], found


@pytest.mark.parametrize("case", calls("harmful") + calls("harmless"))
def test_a_call_does_what_it_is_listed_for_to_what_its_arguments_name(case):
    found = operations(case["tool"], case["args"])
    if "action" in case:
        assert case["action"] in {one.action for one in found}
    assert {one.target for one in found} >= set(case.get("targets", ()))


def test_of_a_transfer_the_account_and_the_amount_are_targets():
    args = {"recipient": "GB29NWBK60161331926819", "amount": 120.5, "subject": "rent", "date": "2024-03-01"}
    found = {one.role: one for one in operations("send_money", args)}
    assert found["account"].target == "GB29NWBK60161331926819"
    assert found["amount"].target == "120.5"
    assert found["account"].note == "pay GB29NWBK60161331926819"


def test_attachments_go_along_with_what_is_sent_to_each_recipient():
    args = {"to": ["a@b.example", "c@d.example"], "attachments": ["/srv/plans.pdf", "x.csv"], "body": "hi"}
    found = [one for one in operations("GmailSendEmail", args) if one.role == "recipient"]
    assert [(one.target, one.carries) for one in found] == [
        ("a@b.example", ("/srv/plans.pdf", "x.csv")),
        ("c@d.example", ("/srv/plans.pdf", "x.csv")),
    ]
    assert found[0].note == "send the content of /srv/plans.pdf and 1 more to a@b.example"


def test_a_private_key_in_an_attachment_is_certain_to_be_no_business_of_others():
    effect = LABELER.propose(
        ToolCall("PostmarkSendEmail", {"to": "a@b.example", "attachments": ["~/.ssh/id_ed25519"]})
    )
    assert certainty(effect.operations, "exfiltration") == CERTAINTIES["certain"]
    assert effect["data"] == "credentials"
    assert "credential_leak" in effect.kinds


def test_what_is_shared_is_named_beside_whom_it_is_shared_with():
    found = operations("DropboxShareItem", {"item_id": "doc-9", "email": "x@y.example"})
    harmful = [one for one in found if one.harm]
    assert [(one.target, one.carries) for one in harmful] == [("x@y.example", ("doc-9",))]
    assert "doc-9" in {one.target for one in found}


def test_people_inside_the_organisation_are_no_strangers_to_its_data():
    inside = Labeler(CATALOGUE, Boundary(domains=["corp.example"]))
    args = {"to": "kim@corp.example", "subject": "x", "body": "y", "attachments": ["q3.xlsx"]}
    assert certainty(operations("GmailSendEmail", args, inside), "exfiltration") == 0
    assert certainty(operations("GmailSendEmail", args), "exfiltration") == CERTAINTIES["likely"]


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("EmailSearch", "read"),
        ("order_list", "read"),
        ("FileEditorWrite", "edit"),
        ("message_delete", "delete"),
        ("text_mom", "send"),
        ("book_flights", "pay"),
        ("order_and_send", "pay"),
    ],
)
def test_a_verb_may_stand_behind_its_object(name, action):
    assert action in {one.action for one in operations(name, {"id": "x-1"})}


@pytest.mark.parametrize(
    ("key", "value", "role"),
    [
        ("whom", "o.berg@north.example", "recipient"),
        ("x", "+47 22 12 34 56", "recipient"),
        ("where", "https://files.north.example/in", "host"),
        ("it", "NO9386011117947", "account"),
        ("it", "0x52908400098527886E0F7030069857D2E4169EE7", "account"),
        ("what", "/srv/data/a.bin", "path"),
        ("thing", "release-7", "resource"),
    ],
)
def test_the_shape_of_a_value_tells_what_it_is_where_its_name_does_not(key, value, role):
    found = operations("handle_request", {"inner": {"more": [{key: value}]}})
    assert (value, role) in {(one.target, one.role) for one in found}


def test_values_in_a_text_of_json_are_found():
    found = operations("submit_form", {"payload": '{"a": {"to": "eli@far.example"}}'})
    assert "eli@far.example" in {one.target for one in found}


def test_a_password_is_never_a_target():
    found = operations("update_login", {"username": "kit", "password": "hunter2-hunter2", "otp": "123456789"})
    assert {one.target for one in found} == {"kit"}


def test_prose_is_no_target_but_addresses_in_it_are_not_lost():
    found = operations("send_note", {"body": "please call", "subject": "x", "to": "a@b.example"})
    assert "please call" not in {one.target for one in found}


def test_an_operation_without_a_target_still_says_what_the_call_does():
    (found,) = operations("wipe_everything", {})
    assert (found.action, found.target, found.harm) == ("delete", "", "destruction")


def test_operations_of_a_call_are_bounded():
    many = {"recipients": [f"p{at}@many.example" for at in range(500)], "path": "/" + "x" * 5000}
    found = operations("broadcast_it", {**many, "attachments": [f"f{at}.txt" for at in range(50)]})
    assert len(found) <= min(MAX_OPERATIONS, MAX_VALUES)
    assert all(len(one.target) <= MAX_TARGET and len(one.carries) <= MAX_CARRIED for one in found)


def test_operations_hold_no_text_that_cannot_be_written_down():
    found = operations("send_it", {"to": "a\ud800b@c.example", "x": "{\ud800"})
    for one in found:
        "".join((one.target, one.note, *one.carries)).encode()


def test_arguments_that_cannot_be_decoded_leave_what_the_tool_does():
    call = ToolCall("delete_file", {}, malformed='{"path": "/srv')
    found = LABELER.propose(call).operations
    assert {one.action for one in found} == {"delete"}


def test_a_failing_command_in_a_tool_nobody_listed_may_have_done_half_of_it():
    assert LABELER.read_call(ToolCall("TerminalRunCommand", {"command": "make; rm a"})).partial
    assert not LABELER.read_call(ToolCall("NotesListAll", {})).partial


def test_what_is_kept_of_a_proposal_says_nothing_of_its_arguments():
    kept = LABELER.read_call(ToolCall("send_email", {"recipients": ["a@b.example"]})).stored()
    assert kept.effect.operations == ()
