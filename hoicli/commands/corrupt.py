"""`hoicli corrupt`: 20 RoHOI-style corruptions at five severities, and records of what they did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hoicli.commands import choices, options
from hoicli.commands.checks import FOLDERS, READ, READ_FOLDER, READ_JSON
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.corruption.catalogue import CORRUPTIONS, FAMILIES, IMAGENET_C, RECIPE, SEVERITIES
from hoicli.corruption.catalogue import corruption as named
from hoicli.errors import DataError, UsageError
from hoicli.io.inputs import readable
from hoicli.io.messages import note
from hoicli.io.outputs import open_output
from hoicli.io.pool import processors
from hoicli.io.streams import Stream

if TYPE_CHECKING:
    from hoicli.converters.opening import Opening
    from hoicli.corruption.catalogue import Recipe
    from hoicli.corruption.engine import Job, Plan


@command(
    reads="image records and their images, or image files",
    writes="images under --save-images, and a record for each image",
    examples=[
        (
            "hoicli corrupt --images images --save-images corrupted gt.jsonl > corrupted.jsonl",
            "all corruptions and severities of every image",
        ),
        (
            "hoicli corrupt --images images --save-images two --corruption jpeg,elastic --severity 4,5 gt.jsonl "
            "> two.jsonl",
            "two of them, the two strongest severities",
        ),
        (
            """jq -c 'select(.corruption == "elastic" and .severity == 3)' corrupted.jsonl > gt-elastic-3.jsonl""",
            "the ground truth of one corruption and severity",
        ),
        (
            "hoicli corrupt --recipe imagenet-c --images images --save-images published gt.jsonl > published.jsonl",
            "by the published constants, where ImageNet-C has the corruption",
        ),
        ("hoicli corrupt --preview photo.jpg -o sheet.png", "a hundred versions of one photograph, to look at"),
        ("hoicli corrupt --list", "what each is, with its constants"),
    ],
    see=["robust", "eval", "mask"],
)
def corrupt(
    sources: list[str] | None = argument(
        None,
        "RECORDS...|IMAGES...",
        "Streams of image records (file_name, optional boxes), or image files; - or nothing is stdin.",
        mark=READ,
    ),
    images: str = option(".", "--images DIR", "The folder of the images that the records name.", mark=READ_FOLDER),
    save_images: str | None = option(
        None,
        "--save-images DIR",
        "Write the images to this folder, as CORRUPTION/SEVERITY/NAME; it is made if need be.",
        mark=FOLDERS,
    ),
    corruption: list[str] | None = option(
        None,
        "--corruption NAME",
        "One or several with commas (--list), or all (default); repeatable.",
        offer=choices.corruptions,
        several=True,
    ),
    severity: list[str] | None = option(
        None,
        "--severity 1-5",
        "One, several with commas, a range as 2-4, or all (default); repeatable.",
        offer=choices.severities,
        several=True,
    ),
    recipe: str = option(
        RECIPE,
        "--recipe NAME|FILE.json",
        "The constants: hoicli-1, imagenet-c (the published ones, of the corruptions it has), or a file of your own.",
        offer=choices.recipes,
        mark=READ_JSON,
    ),
    boxes: str = option(
        "moved",
        "--boxes moved|kept",
        "Boxes move with the content, or stay as annotated (which RoHOI's paper does).",
        one_of=("moved", "kept"),
    ),
    seed: int = option(0, "--seed N", "Another seed draws everything anew."),
    jobs: int | None = option(None, "--jobs N", "Processes; default: one for each processor.", mark=options.JOBS),
    shard: str | None = option(None, "--shard K/N", "Only part K of N parts of the images, chosen by their ids."),
    preview: str | None = option(
        None,
        "--preview IMAGE",
        "Draw one image clean and under all corruptions, whole and its middle at 1:1, into -o FILE (.png, .jpg).",
        mark=READ,
    ),
    list_: bool = flag("--list", "List the corruptions, with their constants and where these come from."),
    on_error: str = options.ON_ERROR,
    *,
    dumps: options.Dumps,
    out: options.Listing,
) -> None:
    """Corrupt images, RoHOI-style: its 20 corruptions, five severities each, by the recipe hoicli-1 or another.

    The paper describes its corruptions in words and publishes no constants, so numbers from these images compare with
    one another and not with the paper's. Writes an image for each corruption and severity, and emits its record: the
    source's own, with corruption, severity, recipe, seed, psnr and ssim against the original, boxes moved to where
    their content went (motion_blur, screen_crack, elastic, perspective, zoom_blur), and the visible share of each box.
    The records of one corruption and severity are a ground truth for eval. Pixels depend on the image (and its id), the
    corruption, the severity, the seed and the recipe's constants alone. Run again, it makes only what is not there yet.
    """
    from hoicli.corruption.recipes import chosen_recipe

    constants = chosen_recipe(recipe, options.separated(corruption))
    if list_:
        _list(out, constants)
        return
    _require_libraries()
    if preview is not None:
        _preview(preview, out.output, seed, constants)
        return
    if save_images is None:
        raise UsageError("corrupt: give the folder to write the images to with --save-images DIR")
    cells = _cells(options.separated(corruption or ["all"]), options.separated(severity or ["all"]), constants)
    part = _shard(shard)
    paths = options.inputs(sources, "RECORDS or IMAGES")

    from hoicli.corruption.engine import Plan, run, unique_jobs

    policy = options.policy(on_error, unit="image")
    plan = Plan(Path(images), _folder(save_images), cells, seed, recipe=constants, kept=boxes == "kept")
    processes = jobs or processors()
    converted: Counter[str] = Counter()
    todo = list(unique_jobs(_jobs(paths, plan, dumps.opening(None, policy)), policy, part))
    outcomes = run(todo, plan, processes=processes, policy=policy)
    with open_output(out.output) as write:
        for outcome in outcomes:
            write(outcome.lines)
            if outcome.converted:
                converted[outcome.converted] += 1
    for what, count in sorted(converted.items()):
        note(
            f"{count:,} {'images' if count > 1 else 'image'} had {what}: written with 8 bits a channel, grey or RGB(A)"
        )
    policy.report()


def _require_libraries() -> None:
    try:
        import cv2  # noqa: F401
        import PIL.Image  # noqa: F401
    except ImportError:
        raise UsageError("corrupt needs OpenCV and Pillow: pip install 'hoicli[images]'") from None


def _jobs(paths: list[str], plan: Plan, opening: Opening) -> Iterator[Job | DataError]:
    """The job of each image or record, or the error of a bad record."""
    from hoicli.corruption.engine import IMAGE_SUFFIXES, path_job, record_job

    for path in paths:
        if path.lower().endswith(IMAGE_SUFFIXES):
            yield path_job(path, plan)
            continue
        for line in Stream([path], "read", opening):
            try:
                job: Job | DataError = record_job(line, plan)
            except DataError as error:
                job = error
            yield job


def _folder(name: str) -> Path:
    """The folder to write to, created if missing; raises `UsageError` if it cannot be created."""
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--save-images {name}: cannot be made ({error.strerror})") from None
    return folder


def _cells(names: list[str], severities: list[str], recipe: Recipe) -> tuple[tuple[str, int], ...]:
    """(corruption, severity) of every requested version, in the order of the table; all are those of the recipe."""
    known = {"all", *CORRUPTIONS, *recipe.owners}
    unknown = [word for word in names if word not in known]
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0], CORRUPTIONS, n=1)
        fix = f"did you mean {near[0]!r}?" if near else "hoicli corrupt --list shows them"
        raise UsageError(f"--corruption: unknown {', '.join(map(repr, unknown))}; {fix}")
    lacking = [word for word in names if word != "all" and word not in recipe.levels]
    if lacking:
        raise UsageError(
            f"--corruption: recipe {recipe.name} has no {', '.join(lacking)}, only {', '.join(recipe.levels)}"
        )
    shown = ",".join(severities)
    chosen: set[int] = set()
    for word in severities:
        if word != "all" and not re.fullmatch("[1-5](-[1-5])?", word):
            raise UsageError(f"--severity {shown}: give 1 to 5, several with commas, a range as 2-4, or all")
        chosen |= set(SEVERITIES) if word == "all" else set(range(int(word[0]), int(word[-1]) + 1))
    if not chosen:
        raise UsageError(f"--severity {shown}: an empty range; write it from low to high")
    wanted = [name for name in recipe.levels if name in names or ("all" in names and name in recipe.usual)]
    return tuple((name, level) for name in wanted for level in SEVERITIES if level in chosen)


def _shard(text: str | None) -> tuple[int, int]:
    """(number of the shard from 1, number of shards)."""
    number, slash, count = (text or "1/1").partition("/")
    if not (slash and number.isascii() and number.isdigit() and count.isascii() and count.isdigit()):
        raise UsageError(f"--shard {text}: write K/N, for example 3/16")
    if not 1 <= int(number) <= int(count):
        raise UsageError(f"--shard {text}: the parts of {int(count)} are 1/{int(count)} to {int(count)}/{int(count)}")
    return int(number), int(count)


def _list(out: options.Listing, recipe: Recipe) -> None:
    """Write the table of a recipe's corruptions, and on stderr where its constants come from."""
    from hoicli.io.plugins import names

    as_jsonl = out.notation() == "jsonl"
    rows = []
    for name in recipe.levels:
        row = named(name)
        if row is None:
            continue
        levels = [
            dict(zip(row.constants, level, strict=True)) if as_jsonl else "/".join(map(str, level))
            for level in recipe.levels[name]
        ]
        rows.append(
            {
                "corruption": name,
                "family": FAMILIES[row.family].words if as_jsonl else row.family,
                "description": row.description,
                "constants": list(row.constants),
                **{f"severity_{number}": level for number, level in enumerate(levels, start=1)},
                "source": {RECIPE: row.source, IMAGENET_C: row.published_in}.get(recipe.name, "a file"),
                "recipe": recipe.said(name),
            }
        )
    if not as_jsonl:  # a table for reading leaves the long columns out
        rows = [{key: value for key, value in row.items() if key not in ("source", "recipe")} for row in rows]
    origin = {RECIPE: "ours but speckle_noise's, which are ImageNet-C's", IMAGENET_C: "ImageNet-C's"}.get(
        recipe.name, "a file's"
    )
    note(f"RoHOI-style, recipe {recipe.name}: RoHOI's paper publishes no constants; these are {origin}")
    if added := [name for name in names("corruptions") if name not in recipe.levels]:
        note(f"installed packages add {', '.join(added)}: --corruption names them")
    out.write(rows)


def _preview(image: str, output: str, seed: int, recipe: Recipe) -> None:
    """Write the contact sheet of one image."""
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
    sheet = contact_sheet(picture.pixels, image_id=Path(image).stem, seed=seed, recipe=recipe)
    with open_output(output) as write:
        write(bytes(cv2.imencode(suffix, cv2.cvtColor(sheet, cv2.COLOR_RGB2BGR))[1]))
