"""The exceptions of hoicli: what went wrong, where, and what to do, in one line.

Library code raises them; only `hoicli.cli` knows exit codes (1 for `DataError`, 2 for `UsageError`).
"""

LONGEST = 1000
"""Characters of a message: several lines of a terminal, and not the megabyte of a label that is none."""


def one_line(text: str) -> str:
    """A message as it may be shown, whatever a file put into it: on one line, of a readable length, and without the
    characters that move a terminal's cursor or colour it (escaped, as Python writes them)."""
    if len(text) > LONGEST:  # the beginning has the place, the end what to do
        text = f"{text[: LONGEST - 310]} ... {text[-300:]}"
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


class HoicliError(Exception):
    """Base of everything hoicli raises on purpose; `str()` is the one line a user sees."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


MALFORMED = "malformed"
"""The code of whatever has none of its own."""


class DataError(HoicliError):
    """The data is wrong: `place` (file:line), `field` and `problem`, the problem ending in what to do about it.

    `code` says which kind of fault it is, for whoever counts or groups faults (`hoicli.validation.checks.CHECKS`).
    """

    def __init__(self, problem: str, *, place: str = "", field: str = "", code: str = MALFORMED) -> None:
        self.problem = problem
        self.place = place
        self.field = field
        self.code = code
        super().__init__(": ".join(part for part in (place, field, problem) if part))


class UsageError(HoicliError):
    """The call is wrong: an option that does not exist, does not fit another, or has an impossible value."""
