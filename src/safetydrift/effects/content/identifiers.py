"""Identifiers of persons and their money: which candidates carry a right check digit, by the library python-stdnum.

The library is imported only for a candidate; numbers of most texts are none.
"""

from __future__ import annotations

import re

from safetydrift.effects.content.secrets import MAIL, looks_random

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CHECKS: dict[str, str] = {
    "card": "a payment card number: known issuers, right check digit",
    "iban": "an international bank account number",
    "random": "looks like a secret, not like a word",
    "at.vnr": "Austrian insurance number",
    "au.tfn": "Australian tax file number",
    "be.nn": "Belgian national number",
    "br.cpf": "Brazilian person",
    "ca.sin": "Canadian social insurance number",
    "ch.ssn": "Swiss insurance number",
    "cn.ric": "Chinese resident identity card",
    "de.idnr": "German tax identification number",
    "dk.cpr": "Danish personal number",
    "es.dni": "Spanish identity number",
    "es.nie": "Spanish foreigner's number",
    "fi.hetu": "Finnish personal identity code",
    "fr.nir": "French social security number",
    "gb.nhs": "British health service number",
    "in_.aadhaar": "Indian digital resident identity number",
    "in_.pan": "Indian income tax identifier",
    "it.codicefiscale": "Italian tax code",
    "kr.rrn": "South Korean resident registration number",
    "nl.bsn": "Dutch citizen number",
    "no.fodselsnummer": "Norwegian birth number",
    "pl.pesel": "Polish national number",
    "se.personnummer": "Swedish personal number",
    "us.itin": "US individual taxpayer number",
    "us.rtn": "US bank routing number",
    "us.ssn": "US social security number",
}
"""What a pattern may ask of a value. Names with a dot are modules of ``stdnum``."""

_ISSUERS = re.compile(
    r"(?:4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})"
    r"|(?:5[1-5][0-9]{2}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720))[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[689][0-9])[0-9]{11}"
    r"|(?:6011|65[0-9]{2}|64[4-9][0-9]|35(?:2[89]|[3-8][0-9]))[0-9]{12}|62[0-9]{14,17})"
)
_PHONE = re.compile(
    r"(?<![\w.+-])(?:\+[0-9]{8,15}|(?:\+[0-9]{1,3}[ .-]?)?\(?[0-9]{2,4}\)?[ .-][0-9]{3,4}[ .-][0-9]{3,4})(?![\w-])"
)
_NOBODY = ("git@", "noreply@", "no-reply@", "donotreply@")
_MAX_TRIMS = 3

_modules: dict[str, Callable[[str], bool]] = {}


def holds(check: str, value: str) -> int:
    """Return how many characters of a value, from its start, pass a check; 0 where it fails."""
    if check == "random":
        value = value.rstrip(".")  # the end of a sentence
        return len(value) if looks_random(value) else 0
    if check == "card":
        return len(value) if _is_card(value) else 0
    if check == "iban":
        return _iban_length(value)
    return len(value) if _is_valid(check, value.upper()) else 0


def _is_card(value: str) -> bool:
    number = value.replace(" ", "").replace("-", "")
    return _ISSUERS.fullmatch(number) is not None and _is_valid("luhn", number)


def _iban_length(value: str) -> int:
    """Return the length of the account number at the start of a value; a word behind it may look like a part of it."""
    for _ in range(_MAX_TRIMS):
        if _is_valid("iban", value):
            return len(value)
        value = value.rpartition(" ")[0]
    return 0


def _is_valid(name: str, value: str) -> bool:
    if name not in _modules:
        # About 30 ms, which a text without a candidate need not pay.
        from importlib import import_module  # noqa: PLC0415

        _modules[name] = import_module(f"stdnum.{name}").is_valid
    return _modules[name](value)


def mail_addresses(text: str, enough: int, limit: int) -> tuple[int, int] | None:
    """Return the span of the first distinct mail addresses if there are enough of them.

    Parameters
    ----------
    limit
        Look at no more than so many at signs.
    """
    seen: set[str] = set()
    start, at = -1, -1
    for _ in range(limit):
        at = text.find("@", at + 1)
        if at < 0:
            return None
        found = MAIL.search(text, max(at - _before(text, at), 0), at + 260)
        if found is None or found.start() > at:
            continue
        address = found[0].lower()
        if address.startswith(_NOBODY):
            continue
        start = found.start() if start < 0 else start
        seen.add(address)
        if len(seen) >= enough:
            return start, found.end()
    return None


def _before(text: str, at: int) -> int:
    """Return how many characters before an at sign may belong to the address."""
    size = 0
    while size < 64 and at - size > 0 and (text[at - size - 1].isalnum() or text[at - size - 1] in "_.+-"):  # noqa: PLR2004
        size += 1
    return size


def phone_numbers(text: str, enough: int) -> tuple[int, int] | None:
    """Return the span of the first distinct phone numbers if there are enough of them."""
    seen: set[str] = set()
    start = -1
    for found in _PHONE.finditer(text):
        start = found.start() if start < 0 else start
        seen.add("".join(filter(str.isdigit, found[0])))
        if len(seen) >= enough:
            return start, found.end()
    return None
