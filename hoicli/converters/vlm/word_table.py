"""The words of a model's answers as a dataset's verbs and objects: what each became and why, counted
(`--to-vocabulary`, `--synonyms`, `--explain-words`)."""

from __future__ import annotations

from collections import Counter

from hoicli.converters.context import Context, list_words, quote_word, write_listing
from hoicli.errors import DataError, did_you_mean
from hoicli.io.streams import Stream
from hoicli.io.text_tables import announced_delimiter, cells_of, usual_delimiter
from hoicli.vocabulary.labels import Vocabulary, normalise
from hoicli.wordnet.spoken_words import SpokenWords
from hoicli.wordnet.word_uses import KIND, SAME_WORD, SPELLING, Meaning

LISTED = "`hoicli vocab --list verbs` and `--list objects` have them all"
"""Advice about a label that is none."""


class WordTable:
    """Maps words, and counts what each became. With --to-vocabulary every word that means a class becomes it, and
    others are left out; without it, a word becomes a class only if it is another form of its name, and others stay."""

    def __init__(self, context: Context) -> None:
        """Take --to-vocabulary, --synonyms and --explain-words. Raises `DataError` for a bad file of synonyms."""
        options, vocabulary = context.options, context.vocabulary
        self._closed, self._file = "to_vocabulary" in options, options.get("explain_words")
        synonyms = read_synonyms(options["synonyms"], vocabulary) if "synonyms" in options else {}
        self._words, self._name = SpokenWords(vocabulary, synonyms), vocabulary.name
        self._counts: Counter[tuple[str, str, str | None, Meaning]] = Counter()
        self._mapped: Counter[str] = Counter()

    def object(self, name: str) -> str | None:
        """Return an object's label for the record, None if --to-vocabulary leaves it out."""
        return self._count("object", name, None, self._words.look_up_object(name))

    def verb(self, phrase: str, object_: str | None) -> str | None:
        """Return a verb's label for the record, None if --to-vocabulary leaves it out. object_: its object's label."""
        return self._count("verb", phrase, object_, self._words.look_up_verb(phrase, object_))

    def count_person(self, kind: str, name: str, label: str) -> None:
        """Count a name that means a person. kind: "subject", or "object" for a box that is in no triplet."""
        if name != label:
            self._counts[kind, name, None, Meaning(label, KIND, "names a person")] += 1
            self._mapped[f"{quote_word(name)} to {label}"] += 1

    def _count(self, kind: str, word: str, object_: str | None, meaning: Meaning) -> str | None:
        """Count a word with its meaning, and return what it becomes."""
        self._counts[kind, word, object_, meaning] += 1
        if not self._closed and meaning.how not in SAME_WORD:
            return word
        if meaning.label is not None and meaning.how != SPELLING:
            self._mapped[f"{quote_word(word)} to {meaning.label}"] += 1
        return meaning.label

    def report(self, context: Context) -> None:
        """Announce how many words became others, with the most frequent ones, and write the file of --explain-words."""
        if self._mapped:
            words = f"{self._mapped.total():,}: {list_words(self._mapped, 'explain_words')}"
            context.announce(f"words mapped to {self._name}'s: {words}")
        if self._file is not None:
            self._write(str(self._file))

    def _write(self, path: str) -> None:
        """Write a row for each word: its kind, the object that it was said of, its class and why, how often."""
        merged: Counter[tuple[str, str, str | None, Meaning]] = Counter()
        for (kind, word, object_, meaning), count in self._counts.items():
            merged[kind, word, object_ if meaning.how == "object" else None, meaning] += count
        rows = []
        for (kind, word, object_, meaning), count in merged.most_common():
            row = {"kind": kind, "word": word.replace("_", " "), "object": object_, "class": meaning.label}
            rows.append({**row, "how": meaning.how, "why": meaning.why, "sense": meaning.sense, "count": count})
        write_listing(path, rows)


def read_synonyms(path: str, vocabulary: Vocabulary) -> dict[str, str]:
    """Return {word: label} of a file with two columns, separated by a comma, semicolon or tab: a word, and the verb or
    object that it means. Empty lines and those that begin with # are passed over. Others raise `DataError`."""
    meanings: dict[str, str] = {}  # by the spelling in lower case
    synonyms: dict[str, str] = {}
    delimiter = None
    for line in Stream([path], "synonyms"):
        if line.number == 1 and (delimiter := announced_delimiter(line)):
            continue
        if line.data.lstrip(b"\xef\xbb\xbf \t").startswith(b"#"):
            continue
        cells = cells_of(line, delimiter or usual_delimiter(line))
        if not any(cells):
            continue
        place = line.place
        if len(cells) != 2 or not all(cells):
            raise DataError("not two columns; give a word, a comma or tab, and a verb or an object", place=place)
        word, label = cells
        labels = [name for name in (*vocabulary.verbs, *vocabulary.objects) if name == label.replace(" ", "_")]
        if not labels:
            advice = did_you_mean(normalise(label).lower(), (*vocabulary.verbs, *vocabulary.objects), LISTED)
            raise DataError(f"{label!r} is no verb and no object of {vocabulary.name}; {advice}", place=place)
        kind = vocabulary.verbs if labels[0] in vocabulary.verbs else vocabulary.objects
        if normalise(word) in kind and normalise(word) != labels[0]:
            raise DataError(
                f"{word!r} is a class of {vocabulary.name} itself, and stays it; delete the line", place=place
            )
        if meanings.setdefault(word.lower(), labels[0]) != labels[0]:
            raise DataError(f"{word!r} occurs twice, with two meanings; keep one", place=place)
        synonyms[word] = labels[0]
    return synonyms
