"""What the page knows, and its files: one for each column in a folder, or everything in one file."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from hoicli.errors import visible, write_number
from hoicli.explorer import summary
from hoicli.explorer.measurements import Measured, Numbers
from hoicli.explorer.page_columns import IOU_STEPS, RELATIONS, STATES, ErrorTable, TruthTable
from hoicli.figures.styles import SERIES, STYLES
from hoicli.records.kit import Floats
from hoicli.records.parsing import Record
from hoicli.version import __version__

SCRIPTS = ("data", "query", "parts", "drawing", "state", "filters", "summary", "views", "image", "start")
"""The page's scripts in the order in which they are joined to one."""
POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src {img}; base-uri 'none'; form-action 'none'"
)
_WHOLE: tuple[type[np.signedinteger[Any]], ...] = (np.int8, np.int16, np.int32)
Columns = dict[str, NDArray[Any]]


def page_files(measured: Measured, images: Record, note: str) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of every file of the page's folder, without the pictures. images: as from
    `pictures.images_of`; note: what the page says where a picture is missing."""
    own_source = "'self'"
    page = {
        "POLICY": POLICY.format(script=own_source, style=own_source, img=own_source),
        "STYLE": '<link rel="stylesheet" href="page.css">',
        "SCRIPT": '<script src="page.js" defer></script>',
    }
    yield "page.css", _style()
    yield "page.js", _script()
    for name, kind, text in _chunks(measured, images, note):
        yield f"data/{name.decode()}.js", b'explorer.take("%s","%s","%s");\n' % (name, kind, text)
    yield "index.html", _fill_frame(measured, page)


def page_file(measured: Measured, images: Record, note: str) -> Iterator[bytes]:
    """Yield the page as one file, piece by piece, without pictures. No browser runs its elements of data as code."""
    style, script = _style(), _script()
    page = {
        "POLICY": POLICY.format(script=_digest(script), style=_digest(style), img="'none'"),
        "STYLE": f"<style>{style.decode()}</style>",
        "SCRIPT": "",
    }
    yield _fill_frame(measured, page).removesuffix(b"</body>\n</html>\n")
    for name, kind, text in _chunks(measured, images, note):
        yield b'<script type="text/plain" id="data/%s" data-kind="%s">%s</script>\n' % (name, kind, text)
    yield b"<script>%s</script>\n</body>\n</html>\n" % script


def _digest(text: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


def _fill_frame(measured: Measured, page: Mapping[str, str]) -> bytes:
    """Return the page's frame, each place `{{NAME}}` filled from `page`; what is filled in is not searched again."""
    title = html.escape(visible(f"{measured.title} - hoicli"))
    places = {"TITLE": title, "VERSION": __version__, **page}
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda place: places[place[1]], _own("index.html")).encode()


def _style() -> bytes:
    """Return the style sheet, led by the colours of error types and series."""
    inks = {f"e-{name}": style for name, style in STYLES.items()}
    inks |= {f"s{number}": style for number, style in enumerate(SERIES)}
    colours = [f".{name} {{ --ink: {style.colour}; }}" for name, style in inks.items()]
    return "\n".join([*colours, _own("page.css")]).encode()


def _script() -> bytes:
    return "\n".join(_own(f"{name}.js") for name in SCRIPTS).encode()


def _own(name: str) -> str:
    return files("hoicli.explorer").joinpath("page", name).read_text(encoding="utf-8")


def _chunks(measured: Measured, images: Record, note: str) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield (name, type, text) of everything that the page knows."""
    tables = {f"view{number}": _number_columns(numbers) for number, numbers in enumerate(measured.numbers.values())}
    tables["truth"] = _truth_columns(measured.truth)
    tables |= {f"model{number}": _model_columns(model.table) for number, model in enumerate(measured.models)}
    values: dict[str, object] = {"facts": _facts(measured, note), "images": images}
    values |= {f"{table}.{name}": column for table, columns in tables.items() for name, column in columns.items()}
    with ThreadPoolExecutor() as pool:  # zlib lets other threads run
        for name, (kind, text) in zip(values, pool.map(_chunk, values.values()), strict=True):
            yield name.encode(), kind, text


def _facts(measured: Measured, note: str) -> Record:
    """Return everything that is no column. views: (slice, part, whether gains were computed for it), all data first."""
    request = measured.request
    vocabulary, protocol = request.vocabulary, request.protocol
    return {
        "version": __version__,
        "title": measured.title,
        "dataset": vocabulary.title,
        "protocol": protocol.name,
        "rule": f"IoU {'above' if protocol.strict else 'at least'} {write_number(protocol.threshold)}",
        "qualifier": vocabulary.qualifier,
        "types": [[name, STYLES[name].words] for name in STATES],
        "relations": RELATIONS,
        "steps": IOU_STEPS,
        "verbs": vocabulary.verbs,
        "classes": [[vocabulary.verb_ids[verb], name] for verb, name in vocabulary.interactions],
        "every": measured.every[0],
        "subsets": list(measured.subsets.items()),
        "images": len(measured.truth.image_ids),
        "triplets": len(measured.truth.image),
        "annotated": measured.annotated,
        "note": note,
        "slices": [
            {
                "name": slice_.name,
                "parts": slice_.parts,
                "members": [part.nonzero()[0] for part in measured.members.get(slice_.name, ())] or None,
            }
            for slice_ in request.slices
        ],
        "views": [[*view, numbers.gains is not None] for view, numbers in measured.numbers.items()],
        "models": [
            {
                "name": model.name,
                "signatures": summary.signatures(measured, model),
                "predictions": len(model.table.score),
                "uncounted": model.table.uncounted,
            }
            for model in measured.models
        ],
        "findings": summary.findings(measured),
        "main": measured.comparison[0]["protocol"] if measured.comparison else "",
        "tiles": summary.tiles(measured),
        "tables": list(summary.tables(measured)),
    }


# Columns as the page reads them: typed arrays and JSON values as texts, which a script or the page itself can hold. A
# page from disk may load nothing else.


def _chunk(value: object) -> tuple[bytes, bytes]:
    """Return (type, text) of a column or of any JSON value. The type is "json", or that of a column's numbers ("f8",
    "i2", ...), where whole numbers take the smallest that holds them; the text is the bytes, little-endian, compressed,
    in base64."""
    if not isinstance(value, np.ndarray):
        return b"json", _compress(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))
    dtype = value.dtype
    if dtype.kind != "f":
        low, high = int(value.min(initial=0)), int(value.max(initial=0))
        dtype = np.dtype(next(whole for whole in _WHOLE if np.iinfo(whole).min <= low and high <= np.iinfo(whole).max))
    strategy = zlib.Z_DEFAULT_STRATEGY if dtype == np.float64 else zlib.Z_HUFFMAN_ONLY
    return dtype.str[1:].encode(), _compress(value.astype(dtype.newbyteorder("<")).tobytes(), strategy)


def _compress(data: bytes, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    """Return data in base64 of gzip without a time stamp, so that the same input gives the same bytes. The level is 1,
    and whole numbers get a code of single bytes (Z_HUFFMAN_ONLY): what is as good as random repeats nothing."""
    compressor = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS, strategy=strategy)
    return base64.b64encode(compressor.compress(data) + compressor.flush())


def _truth_columns(truth: TruthTable) -> Columns:
    """Return the columns of the ground truth."""
    return {
        **{name: getattr(truth, name) for name in ("image", "interaction", "subject", "object")},
        "start": truth.box_start,
        "boxes": _drawable(truth.boxes),
        **{f"part{number}": part for number, part in enumerate(truth.parts)},
    }


def _number_columns(numbers: Numbers) -> Columns:
    """Return the columns of the numbers of classes."""
    gains = {} if numbers.gains is None else {"gains": numbers.gains.reshape(-1)}
    return {"positives": numbers.positives, "ap": numbers.ap.reshape(-1), "counts": numbers.counts.reshape(-1), **gains}


def _model_columns(table: ErrorTable) -> Columns:
    """Return the columns of a model's predictions."""
    names = ("image", "interaction", "error", "relation", "subject", "object", "truth", "state", "by")
    return {
        **{name: getattr(table, name) for name in (*names, "score", "iou_subject", "iou_object")},
        "start": table.box_start,
        "boxes": _drawable(table.boxes),
        **{f"part{number}": part for number, part in enumerate(table.parts)},
    }


def _drawable(boxes: Floats) -> NDArray[np.float32]:
    """Return [4 B] coordinates for drawing, limited and as float32: no screen shows the difference."""
    coordinates: NDArray[np.float32] = np.clip(boxes, -1e9, 1e9).astype(np.float32).reshape(-1)
    return coordinates
