"""The floors, as processes: what reading the input costs when nothing is done with it.

python -m tests.bench.floor lines|whole FILE     orjson.loads of every line, or of the file
python -m tests.bench.floor images DIR TIMES     every JPEG of a folder decoded, and encoded so many times
python -m tests.bench.floor read DIR TIMES       and decoded again each time, which PSNR and SSIM of a file need
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(what: str, path: str, times: str = "") -> None:
    if what in ("images", "read"):
        import cv2

        cv2.setNumThreads(1)
        options = [cv2.IMWRITE_JPEG_QUALITY, 95, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
        for file in Path(path).glob("*.jpg"):
            image = cv2.imread(str(file))
            assert image is not None
            for _ in range(int(times)):
                data = cv2.imencode(".jpg", image, options)[1]
                if what == "read":
                    cv2.imdecode(data, cv2.IMREAD_COLOR)
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
