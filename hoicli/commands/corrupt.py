"""`hoicli corrupt`: 20 RoHOI-style corruptions at five severities, and records of what they did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import FOLDERS, READ
from hoicli.commands.common import JOBS, Format, OnError, Output, inputs, skips
from hoicli.commands.manual import page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hoicli.corruption.engine import Job, Settings
    from hoicli.errors import DataError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    cls=page(
        reads="image records and their images, or image files",
        writes="images under --out, and a record for each of them",
        examples=[
            (
                "hoicli corrupt --images images --out corrupted gt.jsonl > corrupted.jsonl",
                "all corruptions and severities of every image",
            ),
            (
                "hoicli corrupt --images images --out two --corruption jpeg,elastic --severity 4,5 gt.jsonl > 2.jsonl",
                "two of them, the two strongest severities",
            ),
            (
                """jq -c 'select(.corruption == "elastic" and .severity == 3)' corrupted.jsonl > gt-elastic-3.jsonl""",
                "the ground truth of one corruption and severity",
            ),
            ("hoicli corrupt --preview photo.jpg -o sheet.png", "a hundred versions of one photograph, to look at"),
            ("hoicli corrupt --list", "what each is, with its constants"),
        ],
        see=["robust", "eval", "mask"],
    )
)
def corrupt(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RECORDS...|IMAGES...",
            help="Streams of image records (file_name, optional boxes), or image files; - or nothing is stdin.",
        ),
        READ,
    ] = None,
    images: Annotated[
        str, typer.Option("--images", metavar="DIR", help="Where the records' file names lead."), READ
    ] = ".",
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="DIR", help="Write the images here, as CORRUPTION/SEVERITY/NAME; made if need be."
        ),
        FOLDERS,
    ] = None,
    corruption: Annotated[
        list[str] | None,
        typer.Option(
            "--corruption",
            metavar="NAME",
            help="One or several with commas (--list), or all (default).",
            autocompletion=choices.several(choices.corruptions),
        ),
    ] = None,
    severity: Annotated[
        str,
        typer.Option(
            "--severity",
            metavar="1-5",
            help="One, several with commas, a range as 2-4, or all.",
            autocompletion=choices.several(choices.severities),
        ),
    ] = "all",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Another seed draws everything anew.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", help="Processes; default: one for each processor."),
        JOBS,
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="K/N", help="Only this one of N parts of the images, chosen by their ids."),
    ] = None,
    preview: Annotated[
        str | None,
        typer.Option("--preview", metavar="IMAGE", help="Draw all corruptions of one image into -o FILE (.png, .jpg)."),
        READ,
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="What each corruption is, with its constants and where they come from.")
    ] = False,
    format_: Format = "auto",
    on_error: OnError = "stop",
    output: Output = "-",
) -> None:
    """Corrupt images, RoHOI-style: its 20 corruptions, five severities each, by the recipe hoicli-1.

    The paper describes its corruptions in words and publishes no constants, so numbers from these images compare with
    one another and not with the paper's. Writes an image for each corruption and severity, and emits its record: the
    source's own, with corruption, severity, recipe, seed, psnr and ssim against the original, boxes moved along by
    elastic, perspective and zoom_blur, and the visible share of each box. The records of one corruption and severity
    are a ground truth for eval. Pixels depend on the image (and its id), the corruption, the severity and the seed
    alone. Run again, it makes only what is not there yet.
    """
    from pathlib import Path

    from hoicli.errors import UsageError

    _require_libraries()
    if list_:
        _list(format_, output)
        return
    if preview is not None:
        _preview(preview, output, seed)
        return
    if out is None:
        raise UsageError("corrupt: give the folder to write the images to with --out DIR")
    cells = _cells(corruption or ["all"], severity)
    part = _shard(shard)
    if not Path(images).is_dir():
        raise UsageError(f"--images {images}: no such folder")
    paths = inputs(sources, "RECORDS or IMAGES")

    from collections import Counter

    from hoicli.corruption.engine import Settings, run, unique_jobs
    from hoicli.io.messages import note
    from hoicli.io.outputs import open_output
    from hoicli.io.pool import processors
    from hoicli.records.intake import ErrorPolicy

    policy = ErrorPolicy(skip=skips(on_error), unit="image")
    settings = Settings(Path(images), _folder(out), cells, seed)
    todo = list(unique_jobs(_jobs(paths, settings), policy, part))
    converted: Counter[str] = Counter()
    with open_output(output) as write:
        for outcome in run(todo, settings, processes=jobs or processors(), policy=policy):
            write(outcome.lines)
            if outcome.converted:
                converted[outcome.converted] += 1
    for what, count in sorted(converted.items()):
        note(
            f"{count:,} {'images' if count > 1 else 'image'} had {what}: written with 8 bits a channel, grey or RGB(A)"
        )
    policy.report()


def _require_libraries() -> None:
    from hoicli.errors import UsageError

    try:
        import cv2  # noqa: F401
        import PIL.Image  # noqa: F401
    except ImportError:
        raise UsageError("corrupt needs OpenCV and Pillow: pip install 'hoicli[images]'") from None


def _jobs(paths: list[str], settings: Settings) -> Iterator[Job | DataError]:
    """The jobs of all arguments, or what is wrong with the record."""
    from hoicli.corruption.engine import IMAGE_SUFFIXES, path_job, record_job
    from hoicli.errors import DataError
    from hoicli.io.streams import Stream

    for path in paths:
        if path.lower().endswith(IMAGE_SUFFIXES):
            yield path_job(path, settings)
            continue
        for line in Stream([path], "read"):
            try:
                job: Job | DataError = record_job(line, settings)
            except DataError as error:
                job = error
            yield job


def _folder(out: str) -> Path:
    """The folder to write to, made if it is not there; raises `UsageError` where there can be none."""
    from pathlib import Path

    from hoicli.errors import UsageError

    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be made ({error.strerror})") from None
    return folder


def _cells(names: list[str], severities: str) -> tuple[tuple[str, int], ...]:
    """(corruption, severity) of all that is asked for, in the order of the table."""
    from hoicli.errors import UsageError
    from hoicli.records.corruptions import CORRUPTIONS, SEVERITIES

    words = [word.strip() for name in names for word in name.split(",")]
    unknown = [word for word in words if word != "all" and word not in CORRUPTIONS]
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], CORRUPTIONS, n=1)
        mend = f"did you mean {near[0]!r}?" if near else "hoicli corrupt --list shows them"
        raise UsageError(f"--corruption: unknown {', '.join(map(repr, unknown))}; {mend}")
    chosen = set(SEVERITIES) if severities == "all" else set()
    for word in severities.split(",") if severities != "all" else ():
        first, dash, last = word.strip().partition("-")
        if not (first in "12345" and len(first) == 1 and (not dash or (last in "12345" and len(last) == 1))):
            raise UsageError(f"--severity {severities}: give 1 to 5, several with commas, a range as 2-4, or all")
        chosen |= set(range(int(first), int(last or first) + 1))
    if not chosen:
        raise UsageError(f"--severity {severities}: an empty range; write it from low to high")
    return tuple(
        (name, level)
        for name in CORRUPTIONS
        if name in words or "all" in words
        for level in SEVERITIES
        if level in chosen
    )


def _shard(text: str | None) -> tuple[int, int]:
    """(number from 1, of how many)."""
    from hoicli.errors import UsageError

    number, slash, count = (text or "1/1").partition("/")
    if not (slash and number.isascii() and number.isdigit() and count.isascii() and count.isdigit()):
        raise UsageError(f"--shard {text}: write K/N, for example 3/16")
    if not 1 <= int(number) <= int(count):
        raise UsageError(f"--shard {text}: the parts of {int(count)} are 1/{int(count)} to {int(count)}/{int(count)}")
    return int(number), int(count)


def _list(format_: str, output: str) -> None:
    """The table of corruptions, and what it is on stderr."""
    from hoicli.corruption.definitions import DEFINITIONS
    from hoicli.io.messages import note
    from hoicli.io.outputs import open_output
    from hoicli.records.corruptions import FAMILIES, FAMILY_OF, RECIPE
    from hoicli.tables.notations import chosen_format, render

    output_format = chosen_format(format_, output)

    rows = []
    for name, row in DEFINITIONS.items():
        levels = [
            dict(zip(row.constants, level, strict=True)) if output_format == "jsonl" else "/".join(map(str, level))
            for level in row.levels
        ]
        family = FAMILY_OF[name]
        rows.append(
            {
                "corruption": name,
                "family": FAMILIES[family].words if output_format == "jsonl" else family,
                "description": row.description,
                "constants": list(row.constants),
                **{f"severity_{number}": level for number, level in enumerate(levels, start=1)},
                "source": row.source,
                "recipe": RECIPE,
            }
        )
    if output_format != "jsonl":  # a table is for looking at
        rows = [{key: value for key, value in row.items() if key not in ("source", "recipe")} for row in rows]
    note(f"RoHOI-style, recipe {RECIPE}: the paper publishes no constants; these are ImageNet-C's or ours")
    with open_output(output) as write:
        write(render(rows, output_format))


def _preview(image: str, output: str, seed: int) -> None:
    """The contact sheet of one image."""
    from pathlib import Path

    from hoicli.errors import DataError, UsageError
    from hoicli.io.inputs import readable
    from hoicli.io.outputs import open_output

    suffix = Path(output).suffix.lower()
    if suffix not in (".png", ".jpg", ".jpeg"):
        raise UsageError("--preview: give the picture to draw with -o FILE.png (or .jpg)")
    with readable(image):
        data = Path(image).read_bytes()

    import cv2

    from hoicli.corruption.images import decode
    from hoicli.corruption.sheet import contact_sheet

    try:
        picture = decode(data)
    except DataError as error:
        raise DataError(error.problem, place=image) from None
    sheet = contact_sheet(picture.pixels, image_id=Path(image).stem, seed=seed)
    with open_output(output) as write:
        write(bytes(cv2.imencode(suffix, cv2.cvtColor(sheet, cv2.COLOR_RGB2BGR))[1]))
