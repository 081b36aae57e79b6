"""The work of `shoe-sim`: the pairs of senses to rate, their ratings without a network, and the lines to write.

The pairs are those that an evaluation looks up, those of a dataset, or a user's own. `shoe-eval` compares, image by
image, the sense of every ground-truth label with the senses that every predicted label may have. The pairs are
collected with the same code (`labels.Likeness`), so none is missing, and spelling decides the same cases: if a label
has the ground truth's spelling, or can have its sense, nothing is looked up.

Ratings without a network are a measure on WordNet's hierarchy (`wordnet:path`), or hoicli's own from its graph and
glosses (`lexical`). A sense is 1 with itself and never asked about."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence, Set
from itertools import chain, combinations, product

import numpy as np

from hoicli.errors import DataError, UsageError, arg
from hoicli.evaluation.evaluating import gather_in_parallel
from hoicli.io.memory import no_garbage_collection
from hoicli.io.messages import note
from hoicli.io.streams import Line, Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats, Ints, distinct
from hoicli.records.parsing import Record, parse
from hoicli.records.triplets import Name, Triplets, merge, read_triplets
from hoicli.shoe.likenesses import classes_of, likenesses, named_pairs, normalise
from hoicli.shoe.settings import OFFLINE
from hoicli.shoe.similarity_table import Pair, Rated, SensePairs, SimilarityTable, pair_of
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary
from hoicli.wordnet.graph import HYPERNYMS
from hoicli.wordnet.lexicon import open_wordnet
from hoicli.wordnet.measures import ancestors, raw_similarities, rescale
from hoicli.wordnet.senses import candidates, senses_of

NAMES = {"n": "noun", "v": "verb", "a": "adjective", "r": "adverb"}
"""The parts of speech; labels are nouns and verbs, and the other two are for `--pairs` with `lexical` alone."""
LABELS = ("n", "v")

NEARLY_EQUAL = 2e-6
"""How far similarities of one backend may be apart on two machines: `lexical` has six decimals."""

WordPair = tuple[tuple[int, ...], tuple[int, ...]]
"""Two words to compare: the synsets that the first may mean, and those of the second (rows of `wordnet.graph`)."""


def read_predictions(
    predictions: Stream, policy: ErrorPolicy, known_ids: Container[str], *, unlabelled: bool = False
) -> Triplets:
    """Return all predictions of a stream; several processes share a large file. unlabelled: whether labels may be null.
    Raises `DataError` for a bad line."""

    def read_part(lines: Stream, part_policy: ErrorPolicy) -> list[Triplets]:
        """Return the triplets of a part of the file, in batches."""
        with no_garbage_collection():
            return read_triplets(lines, policy=part_policy, known_ids=known_ids, unlabelled=unlabelled)

    def image_ids(part: list[Triplets]) -> Iterable[str]:
        """Return the ids of a part's images, which no other part may have."""
        return chain.from_iterable(batch.image_ids for batch in part)

    parts = gather_in_parallel(read_part, predictions, policy, image_ids)
    return merge(list(chain.from_iterable(parts)))


def compared_classes(vocabulary: Vocabulary, against: str) -> list[tuple[str, str]] | None:
    """Return the (verb, object) of each class of a dataset, with which unmatched predictions are compared; None if they
    are compared with their image's alone. against: a key of AGAINST. Raises `UsageError` for V-COCO, which has none."""
    if against == "image":
        return None
    if vocabulary.roles:
        problem = f"the classes of {vocabulary.name} are actions without labels of objects; leave it out"
        raise UsageError(f"{arg('against', against)}: {problem}")
    return list(vocabulary.interactions)


def evaluation_pairs(
    gt: Stream, models: Sequence[Stream], dataset: str, policy: ErrorPolicy, against: str = "image"
) -> list[Pair]:
    """Return the pairs of senses that `shoe-eval` looks up to evaluate each of these models' predictions against this
    ground truth. against: its option.

    Raises `DataError` for a bad line, or a prediction whose image the ground truth does not have."""
    vocabulary = load(dataset)
    dataset_classes = compared_classes(vocabulary, against)
    truth = merge(read_triplets(gt, policy=policy, truth=True))
    image_ids, unlabelled = frozenset(truth.image_ids), bool(vocabulary.roles)
    # the predictions of all models as those of one: each pair is needed once, whichever model has it
    predictions_read = merge([
        read_predictions(predictions, policy, image_ids, unlabelled=unlabelled) for predictions in models
    ])  # fmt: skip
    classes = classes_of(truth, senses_of(vocabulary), candidates, dataset_classes)
    verbs, objects = likenesses(truth, predictions_read, classes, candidates)
    note_senseless(verbs.senseless | objects.senseless)
    return [*verbs.asked.by_name(), *objects.asked.by_name()]


def dataset_pairs(dataset: str, *, all_senses: bool = False) -> list[Pair]:
    """Return all pairs of two senses of a dataset's verbs, then all pairs of two senses of its objects. all_senses:
    pair each of these senses with every other one of `possible_senses`, too."""
    vocabulary = load(dataset)
    classes: Iterable[tuple[str, str]] = vocabulary.interactions
    if vocabulary.roles:  # the classes are verbs with roles; every verb may have every object
        classes = [(verb, name) for verb, name in product(vocabulary.verbs, vocabulary.objects)]
    pair_names: list[tuple[Name, Name]] = [((verb, None), (name, None)) for verb, name in classes]
    # pairs of names (label, sense), whose sense is None if WordNet has none
    resolved = named_pairs(pair_names, senses_of(vocabulary), candidates)
    verbs, objects = {verb for verb, _ in resolved}, {object_ for _, object_ in resolved}
    note_senseless({label for label, sense in verbs | objects if sense is None and label})
    pairs: list[Pair] = []
    counts: list[str] = []
    for pos, names in (("v", verbs), ("n", objects)):
        senses = sorted({sense for _, sense in names if sense is not None})
        pairs += [(pos, a, b) for a, b in combinations(senses, 2)]
        if all_senses:
            others = possible_senses(pos, senses, {label for label, _ in names if label}).difference(senses)
            for sense in senses:
                pairs += [pair_of(pos, sense, other) for other in others]
            counts.append(f"{len(senses):,} {NAMES[pos]}s of {dataset} with {len(senses) + len(others):,} senses")
    if all_senses:
        note(f"{arg('all_senses')}: {' and '.join(counts)} are {len(pairs):,} pairs")
    return pairs


def possible_senses(pos: str, senses: Sequence[str], labels: Set[str]) -> set[str]:
    """Return the senses of predictions for which a table of a dataset is made (SHOE supplement, section 3). Verbs: all
    of the WordNet in use (the paper's choice of some 7,150 is not published). Objects: the dataset's own senses, those
    that its labels may have, and the neighbourhood of all these: what is above them, and what is one step below."""
    wordnet = open_wordnet()
    graph = wordnet.graph
    if pos == "v":
        return {graph.names[row] for row in graph.ranges["v"]}
    names = set(senses).union(*(candidates(label, pos) for label in labels))
    rows = np.array(sorted(map(wordnet.index, names)), dtype=np.int64)
    sources, targets = graph.edges(*HYPERNYMS)
    below, above = sources[np.isin(targets, rows)], ancestors(graph, rows, root=False).node
    return {graph.names[row] for row in [*above.tolist(), *below.tolist()]}


def missing_rows(tables: Stream, pairs: Sequence[Pair], policy: ErrorPolicy) -> tuple[list[Record], DataError | None]:
    """Return the pairs of senses that tables of similarities lack, as lines {pos, a, b}, and the error that says how
    many they are (None if there are none). Print a note with the number of pairs in the tables and their source."""
    table = SimilarityTable.read(tables, policy, open_wordnet().canonical)
    similarity = table.values([a for _, a, _ in pairs], [b for _, _, b in pairs])
    missing = [pair for pair, is_missing in zip(pairs, np.isnan(similarity).tolist(), strict=True) if is_missing]
    source = ", ".join(f"{key} {value}" for key, value in table.signature().items())
    coverage = f"{len(pairs) - len(missing):,} of the {len(pairs):,} that are needed"
    note(f"{tables.name}: {len(table):,} pairs of senses, {coverage} ({source})")
    rows: list[Record] = [dict(zip(("pos", "a", "b"), pair, strict=True)) for pair in missing]
    problem = f"lacks {len(missing):,} pairs; rate them with hoicli shoe-sim --pairs, and add the lines"
    return rows, DataError(problem, place=tables.name, code="not-whole") if missing else None


def note_senseless(labels: Set[str]) -> None:
    """Print a note that names the labels without a sense, if there are any."""
    if labels:
        first_labels = ", ".join(sorted(labels)[:5]) + (", ..." if len(labels) > 5 else "")
        labels_text = f"{len(labels):,} label{'s' if len(labels) != 1 else ''} ({first_labels})"
        note(f"no WordNet sense for {labels_text}: similarity 1 to the same spelling, else 0")


def rate(backend: str, pairs: Sequence[Pair]) -> list[Rated]:
    """Return the rating of each pair of senses by a measure of the WordNet in use. backend: one of OFFLINE. The order
    of a pair matters slightly to `wup`, which is not quite symmetric."""
    synset = synsets_of(pairs)
    rows = np.array([(synset[a], synset[b]) for _, a, b in pairs], dtype=np.int64).reshape(-1, 2)
    values = _measure(backend, rows).tolist()
    # Pairs of equal similarity share an object: there are millions of pairs, and a measure has few values.
    rated = {value: Rated(value, measure=measure_of(backend)) for value in set(values)}
    return [rated[value] for value in values]


def _measure(backend: str, pairs: Ints) -> Floats:
    """Return [P] the similarity of each pair of synsets [P, 2] by an offline backend."""
    graph = open_wordnet().graph
    if backend == "lexical":
        from hoicli.wordnet.lexical import similarities  # brings SciPy along

        return similarities(graph, pairs)
    measure = backend.removeprefix("wordnet:")
    return rescale(graph, measure, pairs, raw_similarities(graph, measure, pairs))


def measure_of(backend: str) -> str:
    """Return how lines and signatures name an offline backend: with @ and the WordNet's name if it is not embedded."""
    signature = open_wordnet().signature
    return backend if signature is None else f"{backend}@{signature}"


def signed_measure(backend: str) -> str:
    """Return how a signature identifies the similarities of an offline backend: by name and the WordNet's digest."""
    return f"{backend}@{open_wordnet().content_name}"


def backend_of(table: SimilarityTable, asked: Iterable[SensePairs]) -> str | None:
    """Return the offline backend that a table says it is from, if the backend, run now, gives these pairs the same
    similarities; else None. Pairs that the table lacks are passed over."""
    backends = [backend for backend in OFFLINE if table.raters == {measure_of(backend)}]
    if not backends:
        return None
    for pairs in asked:
        number = table.numbers(pairs.names)
        similarity = table.look_up(number[pairs.first], number[pairs.second])
        in_table = np.flatnonzero(~np.isnan(similarity))
        sides = np.column_stack([pairs.first, pairs.second])[in_table]
        senses = [pairs.names[place] for place in distinct(sides.ravel()).tolist()]
        try:
            synset = synsets_of([(pairs.pos, sense, sense) for sense in senses])
            row = np.array([synset.get(sense, -1) for sense in pairs.names], dtype=np.int64)
            expected = _measure(backends[0], row[sides])
        except (DataError, UsageError):  # a sense or counts that this WordNet lacks: the table is from another one
            return None
        if not np.allclose(similarity[in_table], expected, rtol=0, atol=NEARLY_EQUAL):
            return None
    return backends[0]


def synsets_of(pairs: Iterable[Pair]) -> dict[str, int]:
    """Return {sense: its synset, as a row of the WordNet's graph} for all senses in the pairs. Raises `DataError` for a
    sense that WordNet lacks, or of another part of speech than its pair."""
    wordnet, synsets = open_wordnet(), dict[str, int]()
    for pos, sense in sorted({(pos, a) for pos, a, _ in pairs} | {(pos, b) for pos, _, b in pairs}):
        try:
            synsets[sense] = wordnet.index(sense)
        except KeyError:
            raise DataError(f"{sense!r} is no sense of {wordnet.title}; name one like pet.v.01") from None
        if wordnet.graph.pos(synsets[sense]) != pos:
            raise DataError(f"{sense!r} is no sense of a {NAMES[pos]}; compare senses of one part of speech")
    return synsets


class TableWork:
    """The work on a table of similarities: the pairs to rate, and a line for each of them that has a rating."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        """Set the pairs of senses to rate, which are sorted."""
        self.pairs: Sequence[Pair] = sorted(pairs)

    def rows(self, rated: Sequence[Rated]) -> Iterator[Record]:
        """Yield the lines to write, given a rating for each of `pairs`, in their order."""
        for pair, rating in zip(self.pairs, rated, strict=True):
            if rating.similarity is not None:
                yield rating.line(pair)


class PairLines(TableWork):
    """The work on a user's lines {pos, a, b} of words or senses, which are written back with a `similarity`.

    The similarity of two words is that of their most similar senses (`lexical` has its own measure of words); equal
    words, and words that share a sense, have 1. If a word has no sense, the similarity is null, and a note names the
    first such word. A WordNet measure compares in the order of the line, as in nltk."""

    def __init__(self, lines: Iterable[Line], policy: ErrorPolicy, backend: str | None = None) -> None:
        """Read the lines, and find the pairs to rate. backend: of OFFLINE, None for language models."""
        self._lexical = backend == "lexical"
        self._keeps_order = backend is not None and not self._lexical
        self._senseless: dict[str, str] = {}  # {word without a sense: the place of its first line}
        self._lines: list[tuple[Record, float | WordPair | list[Pair]]] = []
        for line in lines:
            with policy.item(line.place):
                record = parse(line)
                self._lines.append((record, self._find_needs(record, line.place)))
        super().__init__(set(chain.from_iterable(needs for _, needs in self._lines if isinstance(needs, list))))

    def rows(self, rated: Sequence[Rated]) -> Iterator[Record]:
        """Yield the user's lines with their similarities, given a rating for each of `pairs`; note senseless words."""
        rating_of = dict(zip(self.pairs, rated, strict=True))
        word_pairs = list(dict.fromkeys(needs for _, needs in self._lines if isinstance(needs, tuple)))
        similarity_of_words: dict[WordPair, float] = {}
        if word_pairs:
            from hoicli.wordnet.lexical import word_similarities  # brings SciPy along

            similarities = word_similarities(open_wordnet().graph, word_pairs).tolist()
            similarity_of_words = dict(zip(word_pairs, similarities, strict=True))
        for record, needs in self._lines:
            if isinstance(needs, float):  # the similarity itself
                yield {**record, "similarity": needs}
            elif isinstance(needs, tuple):  # the synsets of two words
                yield {**record, "similarity": similarity_of_words[needs]}
            else:  # pairs of senses, of which the best counts
                ratings = [rating_of[pair] for pair in needs if rating_of[pair].similarity is not None]
                best = max(ratings, key=lambda rating: rating.similarity or 0.0, default=Rated(None))
                # A line of two senses can go into a table, where it says which models or which measure rated it.
                as_in_table = _is_sense(record["a"]) and _is_sense(record["b"])
                yield {**record, "similarity": best.similarity, **(best.fields if as_in_table else {})}
        if self._senseless:
            word, place = next(iter(self._senseless.items()))
            note(f"words without a WordNet sense: {len(self._senseless):,} (the first: {word!r}, {place})")

    def _find_needs(self, record: Record, place: str) -> float | WordPair | list[Pair]:
        """Return what the similarity of a line is computed from: 1.0 itself for equal words or a shared sense; for
        `lexical`, the synsets of both words; else the pairs of senses to rate ([] if a word has no sense). Raises
        `DataError` for a line without two words of one part of speech."""
        pos = str(record.get("pos"))
        if pos not in (NAMES if self._lexical else LABELS):
            raise DataError("neither n nor v; say what part of speech the words are", field="pos")
        for key in ("a", "b"):
            if type(record.get(key)) is not str or not record[key].strip():
                raise DataError("missing, or no word; give a word or a sense like pet.v.01", field=key)
        words = [record["a"], record["b"]]
        if normalise(words[0]) == normalise(words[1]):
            return 1.0
        if self._lexical and not any(map(_is_sense, words)):
            first_senses, second_senses = (tuple(open_wordnet().word_senses(word, pos)) for word in words)
            if first_senses and second_senses:
                return first_senses, second_senses
        pools = [_pool(word, pos) for word in words]
        for word, pool in zip(words, pools, strict=True):
            if not pool:
                self._senseless.setdefault(word, place)
        if set(pools[0]) & set(pools[1]):
            return 1.0
        pairs = list(product(*pools))
        if self._keeps_order:  # a WordNet measure, which need not be symmetric
            return [(pos, first, second) for first, second in pairs]
        return sorted({pair_of(pos, first, second) for first, second in pairs})


def _is_sense(word: str) -> bool:
    """Return whether a text looks like a sense's name, pet.v.01."""
    return word.count(".") >= 2 and word.rpartition(".")[2].isdecimal()


def _pool(word: str, pos: str) -> list[str]:
    """Return the senses that a word may have ([] if it has none); for the name of a sense, that sense alone, under the
    WordNet's own name. Raises `DataError` for an unknown name of a sense."""
    if _is_sense(word):
        return [open_wordnet().graph.names[row] for row in synsets_of([(pos, word, word)]).values()]
    return candidates(word, pos) if pos in LABELS else []
