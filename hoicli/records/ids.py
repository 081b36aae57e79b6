"""Image ids by the million: their text in one buffer, found again through a hash table of places.

A Python string in a dictionary takes 150 bytes, and a fork that looks one up copies the page it is on. Here an id takes
its own bytes and about 25 more, which forks share."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MISSING = -1
_EMPTY = array("i", [-1])
_DECODED = 4096
"""Texts that are decoded at a time when all are wanted."""


class Texts(Sequence[str]):
    """Texts in the order they were added. As an argument or in a loop they are what a list of them is."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._bytes = bytearray()
        self._ends = array("q", [0])
        self.extend(texts)

    def extend(self, texts: Iterable[str]) -> None:
        """Add texts."""
        before = self._ends[-1]
        if isinstance(texts, Texts):
            self._bytes += texts._bytes
            self._ends.extend(end + before for end in islice(texts._ends, 1, None))
            return
        coded = [text.encode("utf-8", "surrogatepass") for text in texts]
        self._bytes += b"".join(coded)
        self._ends.extend(islice(accumulate(map(len, coded), initial=before), 1, None))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            first, last, step = place.indices(len(self))
            return self._between(first, last) if step == 1 else [self[row] for row in range(first, last, step)]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        return self._bytes[self._ends[place] : self._ends[place + 1]].decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _DECODED):
            yield from self._between(start, min(start + _DECODED, len(self)))

    def _between(self, first: int, last: int) -> list[str]:
        """The texts from one place to before another."""
        ends = self._ends[first : last + 1] if first < last else self._ends[:1]
        text = bytes(self._bytes[ends[0] : ends[-1]])
        return [
            text[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(end - ends[0] for end in ends)
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(str.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"


class ImageIds(Texts):
    """Different texts, and the place of each. Texts with one hash are told apart by the texts themselves."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._hashes = array("q")
        self._table = _EMPTY * 16
        """The place of the text whose hash leads here, or to one of the slots before without a gap; -1 for none."""
        super().__init__(texts)

    def __reduce__(self) -> tuple[type[ImageIds], tuple[Texts]]:
        """The texts alone: Python's hashes differ from process to process, and so would the table."""
        return ImageIds, (Texts(self),)

    def extend(self, texts: Iterable[str]) -> None:
        """Add texts. None of them may be here already."""
        texts = texts if isinstance(texts, Sequence) else list(texts)
        start = len(self)
        super().extend(texts)
        self._hashes.extend(map(hash, texts))
        self._note(start)

    def add(self, text: str) -> int:
        """The place of a text, which is added if it is new."""
        place = self.place(text)
        if place != MISSING:
            return place
        self._bytes += text.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._bytes))
        self._hashes.append(hash(text))
        self._note(len(self) - 1)
        return len(self) - 1

    def place(self, text: str) -> int:
        """The place of a text, MISSING if it is not here."""
        table, hashes, code = self._table, self._hashes, hash(text)
        last = len(table) - 1
        slot = code & last
        while (place := table[slot]) >= 0:
            if hashes[place] == code and self[place] == text:
                return place
            slot = slot + 1 & last
        return MISSING

    def _are(self, places: NDArray[np.int64], texts: Sequence[str]) -> bool:
        """Whether the texts at these places are `texts`."""
        import numpy as np

        whole = "".join(texts)
        coded = whole.encode("utf-8", "surrogatepass")
        sizes: Iterable[str | bytes] = texts
        if len(coded) != len(whole):
            sizes = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.frombuffer(self._ends, dtype=np.int64)
        start, size = ends[places], np.fromiter(map(len, sizes), dtype=np.int64, count=len(texts))
        if (ends[places + 1] - start != size).any():
            return False
        at = np.repeat(start - np.cumsum(size) + size, size) + np.arange(len(coded))
        return np.frombuffer(self._bytes, dtype=np.uint8)[at].tobytes() == coded

    def places(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """[M] the place of each text, MISSING for one that is not here."""
        import numpy as np

        wanted = np.fromiter(map(hash, texts), dtype=np.int64, count=len(texts))
        hashes, table = np.frombuffer(self._hashes, dtype=np.int64), np.frombuffer(self._table, dtype=np.int32)
        found = np.full(len(wanted), MISSING, dtype=np.int64)
        left, slot = np.arange(len(wanted)), wanted & len(table) - 1
        while len(left):
            place = table[slot]
            alike = place >= 0
            alike[alike] = hashes[place[alike]] == wanted[left[alike]]
            found[left[alike]] = place[alike]
            onward = (place >= 0) & ~alike
            left, slot = left[onward], slot[onward] + 1 & len(table) - 1
        there = np.flatnonzero(found >= 0)
        if self._are(found[there], texts if len(there) == len(texts) else [texts[row] for row in there.tolist()]):
            return found
        return np.array([self.place(text) for text in texts], dtype=np.int64)

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self.place(text) != MISSING

    def _note(self, start: int) -> None:
        """Write the texts from `start` on into the table, and all of them into a larger one if it gets full."""
        if 5 * len(self) > 3 * len(self._table):
            self._table = _EMPTY * (1 << (2 * len(self)).bit_length())
            start = 0
        if start == len(self) - 1:
            self._note_one(start)
            return
        import numpy as np

        table = np.frombuffer(self._table, dtype=np.int32)
        place = np.arange(start, len(self), dtype=np.int32)
        slot = np.frombuffer(self._hashes, dtype=np.int64)[start:] & len(table) - 1
        while len(place):
            free = table[slot] < 0
            table[slot[free]] = place[free]  # of several for one slot, the last
            without = table[slot] != place
            place, slot = place[without], slot[without] + 1 & len(table) - 1

    def _note_one(self, place: int) -> None:
        last = len(self._table) - 1
        slot = self._hashes[place] & last
        while self._table[slot] >= 0:
            slot = slot + 1 & last
        self._table[slot] = place
