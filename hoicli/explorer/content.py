"""The explorer's page, written or served: its content, and its files, one for each column of data or one for all."""

from __future__ import annotations

import base64
import html
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from hoicli.errors import visible, write_number
from hoicli.explorer import summary
from hoicli.explorer.folder import is_file
from hoicli.explorer.measurements import Measured
from hoicli.explorer.page_columns import IOU_STEPS, RELATIONS, STATES, ErrorTable, TruthTable
from hoicli.explorer.pictures import image_facts, images_of
from hoicli.figures.styles import SERIES, STYLES
from hoicli.io.outputs import atomic_folder, open_output
from hoicli.io.streams import Stream
from hoicli.records.kit import Floats
from hoicli.records.parsing import Record
from hoicli.tables.html_page import source_digest
from hoicli.version import __version__

if TYPE_CHECKING:
    from hoicli.explorer.server import Explorer

SCRIPTS = ("data", "query", "parts", "drawing", "state", "filters", "summary", "views", "image", "start")
"""The page's scripts in the order in which they are joined to one."""
POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src {img}; base-uri 'none'; form-action 'none'"
)
CURVE_POINTS = 200
"""How many points the curve of all predictions has at most, but for one or two."""
_WHOLE: tuple[type[np.signedinteger[Any]], ...] = (np.int8, np.int16, np.int32)
Columns = dict[str, NDArray[Any]]


def _find_images(measured: Measured, gt: Stream, folder: str | None) -> tuple[Record, dict[str, Path], str]:
    """Return (the page's facts about images, {address: the picture's file}, what the page says where a picture is
    missing). This reads the ground truth once more. folder: of the pictures, None for none."""
    image_ids = measured.truth.image_ids
    images, file_of_address = images_of(folder, image_ids, image_facts(image_ids, gt))
    return images, file_of_address, "no picture: --images was not given" if folder is None else "image not at hand"


def write_page(measured: Measured, gt: Stream, path: str, folder: str | None) -> None:
    """Write the page, all or nothing: as one file without pictures if `path` ends in .html, else as a folder with links
    to the pictures in `folder` (None: without pictures). Raises `UsageError` for a path that cannot be
    written, `DataError` if writing fails."""
    images, file_of_address, missing = _find_images(measured, gt, folder)
    if is_file(path):
        with open_output(path) as write:
            for piece in page_file(measured, images):
                write(piece)
        return
    with atomic_folder(path) as target:
        for name in ("data", *(["pictures"] if file_of_address else [])):
            (target / name).mkdir()
        for name, content in page_files(measured, images, missing):
            (target / name).write_bytes(content)
        for name, source in file_of_address.items():
            (target / name).symlink_to(source.resolve())


def page_server(measured: Measured, gt: Stream, folder: str | None) -> Explorer:
    """Return a server that shows the page on this machine alone. folder: of the pictures, None for none."""
    from hoicli.explorer.server import Explorer  # imported here, as it takes as long to import as all else here

    images, file_of_address, missing = _find_images(measured, gt, folder)
    return Explorer(dict(page_files(measured, images, missing)), file_of_address)


def page_files(measured: Measured, images: Record, note: str) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of every file of the page's folder, without the pictures. images: the page's facts about
    images, by column; note: what the page says where a picture is missing."""
    same_folder = "'self'"  # the page's security policy: nothing is loaded from elsewhere
    page = {
        "POLICY": POLICY.format(script=same_folder, style=same_folder, img=same_folder),
        "STYLE": '<link rel="stylesheet" href="page.css">',
        "SCRIPT": '<script src="page.js" defer></script>',
    }
    yield "page.css", _style()
    yield "page.js", _script()
    for name, kind, text in _chunks(measured, images, note):
        yield f"data/{name.decode()}.js", b'explorer.take("%s","%s","%s");\n' % (name, kind, text)
    yield "index.html", _fill_frame(measured, page)


def page_file(measured: Measured, images: Record) -> Iterator[bytes]:
    """Yield the page as one file, piece by piece, without pictures. The data are in script elements of the type
    text/plain, which no browser runs as code. images: the page's facts about images."""
    style, script = _style(), _script()
    page = {
        "POLICY": POLICY.format(script=source_digest(script), style=source_digest(style), img="'none'"),
        "STYLE": f"<style>{style.decode()}</style>",
        "SCRIPT": "",
    }
    yield _fill_frame(measured, page).removesuffix(b"</body>\n</html>\n")
    for name, kind, text in _chunks(measured, images, "no picture: this page is one file"):
        yield b'<script type="text/plain" id="data/%s" data-kind="%s">%s</script>\n' % (name, kind, text)
    yield b"<script>%s</script>\n</body>\n</html>\n" % script


def _fill_frame(measured: Measured, page: Mapping[str, str]) -> bytes:
    """Return the page's HTML, in which each `{{NAME}}` is replaced by `page[NAME]`, the title or the version. What is
    filled in is not searched for names again."""
    title = html.escape(visible(f"{measured.title} - hoicli"))
    places = {"TITLE": title, "VERSION": __version__, **page}
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda place: places[place[1]], _page_source("index.html")).encode()


def _style() -> bytes:
    """Return the style sheet, with the colours of error types (classes `e-...`) and of models (`s0`, `s1`) first."""
    style_by_class = {f"e-{name}": style for name, style in STYLES.items()}
    style_by_class |= {f"s{number}": style for number, style in enumerate(SERIES)}
    colours = [f".{name} {{ --ink: {style.colour}; }}" for name, style in style_by_class.items()]
    return "\n".join([*colours, _page_source("page.css")]).encode()


def _script() -> bytes:
    """Return all scripts of the page, joined to one."""
    return "\n".join(_page_source(f"{name}.js") for name in SCRIPTS).encode()


def _page_source(name: str) -> str:
    """Return the text of one of the files that the page is made from (hoicli/explorer/page)."""
    return files("hoicli.explorer").joinpath("page", name).read_text(encoding="utf-8")


def _chunks(measured: Measured, images: Record, note: str) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield (name, type, text) of each piece of data that the page reads: "facts", "images", and columns such as
    "truth.boxes". The type is "json" or that of a column's numbers, such as "i2"; the text is compressed, in base64."""
    tables: dict[str, Columns] = {}
    for number, numbers in enumerate(measured.numbers.values()):  # of the classes, on all data or a part
        # The page reads flat arrays, so those of several dimensions are put in one row.
        tables[f"view{number}"] = {
            name: column.reshape(-1) for name, column in numbers._asdict().items() if column is not None
        }
    subjects_labelled = len(measured.request.vocabulary.subject_ids) > 1
    tables["truth"] = _triplet_columns(measured.truth, _OF_TRUTH, subjects_labelled)
    for number, model in enumerate(measured.models):
        tables[f"model{number}"] = _triplet_columns(model.table, _OF_MODEL, subjects_labelled)
    values: dict[str, object] = {"facts": _facts(measured, note), "images": images}
    for table, columns in tables.items():
        values |= {f"{table}.{name}": column for name, column in columns.items()}
    with ThreadPoolExecutor() as pool:  # threads are enough, as zlib lets other threads run meanwhile
        for name, (kind, text) in zip(values, pool.map(_encode, values.values()), strict=True):
            yield name.encode(), kind, text


def _facts(measured: Measured, note: str) -> Record:
    """Return all that the page shows except columns and images, as an object for JSON. note: what the page says where a
    picture is missing.

    subjects: the names of all labels, None where subjects are persons; every: the name of the subset of all classes;
    views: [slice (a partition of the data), part, whether gains were computed for it], all data first; members: the
    images in each part; relations, steps, types: what the numbers in columns mean; main: the protocol of the
    comparison; uncounted: predictions that the protocol drops.
    """
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
        "subjects": vocabulary.objects if len(vocabulary.subject_ids) > 1 else None,
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
                "curve": _curve(model.table, len(measured.truth.image)),
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


def _encode(value: object) -> tuple[bytes, bytes]:
    """Return (type, text) of a column or of any JSON value, as page/data.js reads it. The type is "json", or that of a
    column's numbers ("f8", "i2", ...), the smallest that holds them if they are whole numbers. The text is the JSON or
    the numbers' bytes (little-endian), compressed, in base64."""
    if not isinstance(value, np.ndarray):
        return b"json", _compress(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))
    dtype = value.dtype
    if dtype.kind != "f":
        low, high = int(value.min(initial=0)), int(value.max(initial=0))
        dtype = np.dtype(next(whole for whole in _WHOLE if np.iinfo(whole).min <= low and high <= np.iinfo(whole).max))
    # Columns of shorter numbers hardly repeat anything, so only single bytes are encoded, which is faster.
    strategy = zlib.Z_DEFAULT_STRATEGY if dtype == np.float64 else zlib.Z_HUFFMAN_ONLY
    # the name without its first character, the byte order
    return dtype.str[1:].encode(), _compress(value.astype(dtype.newbyteorder("<")).tobytes(), strategy)


def _compress(data: bytes, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    """Return data compressed by gzip, in base64. There is no time stamp in it, so that the same input gives the same
    bytes. strategy: one of zlib's, that is, which repetitions it looks for."""
    compressor = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS, strategy=strategy)
    return base64.b64encode(compressor.compress(data) + compressor.flush())


_OF_TRUTH = ("image", "interaction", "subject", "object")
_OF_MODEL = (
    *("image", "interaction", "error", "relation", "subject", "object", "truth", "state", "by"),
    *("score", "iou_subject", "iou_object"),
)
"""The columns of the ground truth, and of a model's predictions, that the page calls as their tables do."""


def _triplet_columns(table: TruthTable | ErrorTable, names: Sequence[str], subjects_labelled: bool) -> Columns:
    """Return {column's name on the page: numbers} of a table of triplets. names: of columns with the same name there.
    subjects_labelled: whether the page names the label of each subject, since some are no persons."""
    return {
        **{name: getattr(table, name) for name in names},
        "start": table.box_start,
        # limited to what a screen can need, in single precision and in one row
        "boxes": np.clip(table.boxes, -1e9, 1e9).astype(np.float32).reshape(-1),
        **{f"part{number}": part for number, part in enumerate(table.parts)},
        **({"subject_label": table.label[table.box_start[table.image] + table.subject]} if subjects_labelled else {}),
    }


def _curve(table: ErrorTable, positives: int) -> Floats:
    """Return [M, 2] recall and precision of all predictions in one list, best score first, in at most some CURVE_POINTS
    points: those after which the recall has grown by a step. positives: how many ground truths there are."""
    found_count = np.cumsum(table.error == STATES.index("true_positive"))
    steps = (found_count * CURVE_POINTS) // max(positives, 1)
    ends = np.flatnonzero(np.append(steps[1:] != steps[:-1], [True] * (len(steps) > 0)))
    points: Floats = np.stack([found_count[ends] / max(positives, 1), found_count[ends] / (ends + 1)], axis=1)
    return points
