"""The floors, as processes: what reading the input costs when nothing is done with it.

python -m tests.bench.floor lines|whole FILE     orjson.loads of every line, or of the file
python -m tests.bench.floor images DIR TIMES     every JPEG of a folder decoded, and encoded so many times
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(what: str, path: str, times: str = "") -> None:
    """Read, and throw away."""
    if what == "images":
        import cv2

        cv2.setNumThreads(1)
        for file in Path(path).glob("*.jpg"):
            image = cv2.imread(str(file))
            assert image is not None
            for _ in range(int(times)):
                cv2.imencode(".jpg", image)
        return
    import orjson

    with open(path, "rb") as stream:
        if what == "whole":
            orjson.loads(stream.read())
        else:
            for line in stream:
                orjson.loads(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
