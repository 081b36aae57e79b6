"""A dataset's names for a model's words (`--to-vocabulary`), by spelling only, not by meaning."""

from __future__ import annotations

from collections.abc import Iterator

from hoicli.vocabulary.labels import Vocabulary


class Spelling:
    """Looks up names in a vocabulary, ignoring case and spaces; a gerund also as its base form."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._verbs = {_folded(name): name for name in vocabulary.verbs}
        self._objects = {_folded(name): name for name in vocabulary.objects}

    def object(self, name: str) -> str | None:
        """The vocabulary's spelling of an object, None for one it does not have."""
        return self._objects.get(_folded(name))

    def verb(self, name: str) -> str | None:
        """The vocabulary's spelling of a verb, None for one it does not have: "riding" is ride, "sitting_on" sit_on."""
        first, *rest = name.split("_")
        spelled = ("_".join((base, *rest)) for base in (first, *base_forms(first)))
        return next((self._verbs[_folded(form)] for form in spelled if _folded(form) in self._verbs), None)


def _folded(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def base_forms(word: str) -> Iterator[str]:
    """The possible base forms of a gerund: riding -> rid, ride; sitting -> sitt, sitte, sit; lying -> ly, lye, lie."""
    if not word.endswith("ing") or len(word) < 5:
        return
    stem = word[:-3]
    yield stem
    yield stem + "e"
    if len(stem) > 2 and stem[-1] == stem[-2]:
        yield stem[:-1]
    if stem.endswith("y"):
        yield stem[:-1] + "ie"
