"""`hoicli corrupt`: 20 RoHOI-style corruptions at five severities, and records of what they did."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hoicli.corruption.catalogue import CORRUPTIONS, IMAGENET_C, RECIPE, SEVERITIES, expand_groups
from hoicli.corruption.catalogue import corruption as named
from hoicli.errors import DataError, UsageError, arg
from hoicli.interface import choices, options
from hoicli.interface.checks import FOLDER, OUTPUT, READ, READ_FOLDER, READ_JSON
from hoicli.interface.command import command
from hoicli.interface.option_values import names_of, text_of, texts_of
from hoicli.interface.options import Files, Given, Names, Option, Piped, Unpack
from hoicli.interface.results import Notes, Records, Result, instead
from hoicli.io.messages import note
from hoicli.io.outputs import writable, write_output

if TYPE_CHECKING:
    from hoicli.corruption.catalogue import Recipe
    from hoicli.corruption.engine import Job, Plan
    from hoicli.interface.inputs import Inputs


@command(
    reads="image records and their images, or image files",
    writes="images under --save-images, and a record for each image; with --records-only the records alone",
    examples="""
        hoicli corrupt --images images --save-images corrupted gt.jsonl > corrupted.jsonl
            # all corruptions and severities of every image
        jq -c 'select(.corruption == "elastic" and .severity == 3)' corrupted.jsonl > gt-elastic-3.jsonl
            # the ground truth of one corruption and severity
        hoicli corrupt --with-clean --images images --save-images corrupted gt.jsonl > truth.jsonl
            # all cells and the originals, for eval --by corruption,severity
        hoicli corrupt --recipe imagenet-c --images images --save-images published gt.jsonl > published.jsonl
            # with ImageNet-C's published constants, for the corruptions it has
        hoicli corrupt --records-only --corruption zoom_blur gt.jsonl > moved.jsonl
            # only the moved boxes, for a data loader that corrupts images in memory
        hoicli corrupt --corruption weather --images images --save-images weather gt.jsonl > weather.jsonl
            # night, rain, fog and snow
        hoicli corrupt --preview photo.jpg --corruption weather,jpeg -o sheet.png  # one photograph, before all images
        hoicli corrupt --list  # the corruptions and their constants
    """,
    see=["robust", "eval", "mask"],
    listed=lambda values: bool(values["list_"]),
)
def corrupt_records(
    sources: Annotated[Given | None, Piped("RECORDS...|IMAGES...")] = None,
    *,
    images: Annotated[options.Path, Option("DIR", check=READ_FOLDER)] = ".",
    save_images: Annotated[options.Path | None, Option("DIR", check=FOLDER)] = None,
    records_only: bool = False,
    corruption: Annotated[Names, Option("NAME", offer=choices.corruptions, several=True)] = None,
    severity: Annotated[
        str | int | Sequence[str | int] | None, Option("1-5", offer=choices.SEVERITIES, several=True)
    ] = None,
    recipe: Annotated[options.Path, Option("NAME|FILE.json", offer=choices.RECIPES, check=READ_JSON)] = RECIPE,
    boxes: Annotated[str, Option("moved|kept", one_of=("moved", "kept"))] = "moved",
    with_clean: bool = False,
    seed: Annotated[int, Option("N")] = 0,
    jobs: Annotated[int | None, Option("N", check=options.JOBS)] = None,
    shard: Annotated[str | None, Option("K/N")] = None,
    preview: Annotated[options.Path | None, Option("IMAGE", check=READ)] = None,
    list_: bool = False,
    output: Annotated[str, options.output(OUTPUT)] = "-",
    **shared: Unpack[Files],
) -> Records:
    """Corrupt images, RoHOI-style: its 20 corruptions, five severities each, by the recipe hoicli-1 or another.

    The paper describes its corruptions in words and publishes no constants, so numbers from these images are comparable
    with one another, not with the paper's. Writes an image for each corruption and severity, and a record for it: the
    original record with corruption, severity, recipe, seed, psnr and ssim against the original, boxes moved with their
    content (motion_blur, screen_crack, elastic, perspective, zoom_blur), and the visible share of each box. The records
    of one corruption and severity are a ground truth for eval. A second run makes only the missing images.

    Arguments:
        sources: Files of image records (file_name, optional boxes), or image files; - or nothing is stdin.
        images: The folder of the images that the records name.
        save_images: Write the images to this folder, as CORRUPTION/SEVERITY/NAME; created if missing.
        records_only: Write only the records, without psnr and ssim, and no images. If records have width and height,
            images are not read either.
        corruption: One or several with commas (--list), all (default: RoHOI's 20), or weather (night, rain, fog and
            snow, which RoHOI does not have); repeatable.
        severity: One, several with commas, a range like 2-4, or all (default); repeatable.
        recipe: The constants: hoicli-1, imagenet-c (the published ones, for the corruptions it has), or a file of your
            own.
        boxes: moved: boxes move with their content; kept: they stay as annotated (as in RoHOI's paper).
        with_clean: Add the original images, as corruption clean at severity 0: what robust compares with.
        seed: Another seed gives other random draws.
        jobs: The number of processes (default: one for each processor).
        shard: Only part K of N parts of the images, chosen by their ids.
        preview: Draw one image, clean and with these corruptions at these severities, to -o FILE (.png, .jpg).
        list_: List the corruptions, also those of installed packages, with their constants and the source of each.
    """
    from hoicli.corruption.recipes import choose_recipe

    names = expand_groups(names_of(corruption) or ["all"])
    if list_:
        return instead(_list_corruptions(os.fspath(recipe), names))
    constants = choose_recipe(os.fspath(recipe), [name for name in names if name != "all"])
    # cells: (corruption, severity) of each version of an image
    cells = choose_versions(names, names_of(texts_of(severity) or "all"), constants)
    _note_hidden_plugins(names)
    require_libraries()
    if preview is not None:
        unused = {"save_images": save_images, "records_only": records_only, "with_clean": with_clean, "shard": shard}
        unused_texts = [arg(option) for option, value in unused.items() if value] + ["RECORDS"] * (sources is not None)
        if unused_texts:
            raise UsageError(f"{arg('preview')}: draws this image alone; leave out {', '.join(unused_texts)}")
        _preview(os.fspath(preview), output, cells, seed, constants)
        return instead(Notes())
    folder = text_of(save_images)
    if (folder is None) != records_only:
        problem = f"give the folder to write the images to with {arg('save_images', like='DIR')}"
        raise UsageError(f"corrupt: {problem}, or {arg('records_only')} (not both)")
    part = _shard(shard)  # the images of this shard

    from hoicli.corruption.engine import Plan, run, unique_jobs
    from hoicli.interface.inputs import Inputs
    from hoicli.io.spawned_workers import processors

    inputs = Inputs(None, shared, unit="image")
    policy = inputs.policy
    out = Path(folder or "")
    if folder is not None:
        with writable(folder):
            out.mkdir(parents=True, exist_ok=True)
    plan = Plan(
        Path(images), out, cells, seed,
        recipe=constants, boxes_kept=boxes == "kept", alone=records_only, with_clean=with_clean,
    )  # fmt: skip
    todo = list(unique_jobs(_jobs(sources, plan, inputs), policy, part))

    return Records(policy.report_at_end(run(todo, plan, processes=jobs or processors(), policy=policy)))


def require_libraries(who: str = "corrupt") -> None:
    """Raise `UsageError` if OpenCV or Pillow is not installed. who: what needs them, for the message."""
    try:
        import cv2  # noqa: F401
        import PIL.Image  # noqa: F401
    except ImportError:
        problem = f"{who} needs OpenCV and Pillow: pip install 'hoicli[images]'"
        raise UsageError(problem, code="missing-package") from None


def _jobs(sources: Given | None, plan: Plan, inputs: Inputs) -> Iterator[Job]:
    """Yield a job for each image file or record in the sources: what to corrupt, and how. sources: paths or records,
    None for stdin; plan: the settings of all jobs. A bad record raises `DataError` or is skipped, as --on-error
    says."""
    from hoicli.corruption.engine import path_job, record_job
    from hoicli.interface.inputs import piped_paths
    from hoicli.records.names import PICTURE_ENDINGS

    paths = piped_paths(sources, "RECORDS or IMAGES", "sources")
    each_source: Iterable[Any] = [sources] if paths is None else paths
    for source in each_source:
        if isinstance(source, str) and Path(source).suffix.lower() in PICTURE_ENDINGS:
            yield path_job(source, plan)
            continue
        if isinstance(source, str) and os.path.isdir(source):
            endings = (Path(name).suffix for name in sorted(os.listdir(source)))
            if ending := next((ending for ending in endings if ending.lower() in PICTURE_ENDINGS), ""):
                raise UsageError(f"{source}: a folder; give its pictures, {os.path.join(source, '*')}{ending}")
        for line in inputs.records(source, "records", "RECORDS or IMAGES", name="sources").refuse_empty():
            with inputs.policy.item():
                yield record_job(line, plan)


def choose_versions(names: Sequence[str], severities: list[str], recipe: Recipe) -> tuple[tuple[str, int], ...]:
    """Return (corruption, severity) of every version of an image to make, in the order of the recipe. names: of
    corruptions; "all" stands for all usual ones of the recipe. severities: texts such as "3", "2-4" or "all". Raises
    `UsageError` for any other."""
    chosen: set[int] = set()
    for text in severities or [""]:  # "" is refused below: --severity without any value
        levels: Iterable[int] = ()
        if text == "all":
            levels = SEVERITIES
        elif numbers := re.fullmatch("([1-5])(?:-([1-5]))?", text):
            levels = range(int(numbers[1]), int(numbers[2] or numbers[1]) + 1)
        if not levels:
            problem = "give 1 to 5, several with commas, a range like 2-4, or all"
            raise UsageError(f"{arg('severity', ','.join(severities))}: {problem}")
        chosen.update(levels)
    chosen_names = [name for name in recipe.levels if name in names or ("all" in names and name in recipe.usual)]
    return tuple((name, level) for name, level in product(chosen_names, SEVERITIES) if level in chosen)


def _shard(text: str | None) -> tuple[int, int]:
    """Return (K, N) of a text K/N: which part of the images, from 1, and of how many; (1, 1) for None. Raises
    `UsageError` for anything else."""
    match = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text or "1/1")
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"{arg('shard', text)}: write K/N, K from 1 to N, for example 3/16")
    return int(match[1]), int(match[2])


def _list_corruptions(recipe_name: str, names: Sequence[str]) -> Result:
    """Return the rows of --list, a recipe's corruptions with their constants, those of installed packages among them;
    print notes where these come from, and which of a package cannot be listed. names: of --corruption; "all" lists
    every one."""
    from hoicli.corruption.recipes import choose_recipe
    from hoicli.io.plugins import names as plugin_names

    recipe = choose_recipe(recipe_name, [name for name in names if name != "all"])
    for name in plugin_names("corruptions"):
        _note_hidden_plugins([name])
        try:
            recipe = choose_recipe(recipe_name, [*recipe.owners, name])
        except UsageError as error:
            note(str(error))
    rows, short_rows = [], []  # tables have the short ones, without the long columns
    for name, levels in recipe.levels.items():
        row = named(name)
        if row is None or not {"all", name} & set(names):  # None never occurs: reading a recipe checks its names
            continue
        description: dict[str, Any] = {"corruption": name, "family": row.family, "description": row.description}
        description["constants"] = list(row.constants)
        values_of_severities = {f"severity_{number}": values for number, values in enumerate(levels, start=1)}
        # where the constants come from: hoicli-1's, or ImageNet-C's as published
        source = {RECIPE: row.source, IMAGENET_C: row.published_in}.get(recipe.name, "a file")
        constants_of_severities, texts_of_severities = {}, {}
        for key, values in values_of_severities.items():
            constants_of_severities[key] = dict(zip(row.constants, values, strict=True))
            texts_of_severities[key] = "/".join(map(str, values))
        rows.append({**description, **constants_of_severities, "source": source, "recipe": recipe.recipe_text(name)})
        short_rows.append(description | texts_of_severities)
    note(f"RoHOI-style, recipe {recipe.name}: RoHOI's paper publishes no constants; these are {recipe.words}")
    if others := [name for name in recipe.levels if name not in recipe.usual]:
        note(f"not RoHOI's, made where {arg('corruption')} names them: {', '.join(others)}")
    return Result(rows, blocks=lambda notation: [rows if notation == "jsonl" else short_rows])


def _note_hidden_plugins(names: Iterable[str]) -> None:
    """Print a note for each of these corruptions of hoicli's whose name an installed package has, too."""
    from hoicli.io.plugins import names as plugin_names

    for name in set(names) & CORRUPTIONS.keys() & set(plugin_names("corruptions")):
        note(f"{name} is hoicli's own; that of an installed package is not used until it has another name")


def _preview(image: str, output: str, cells: Iterable[tuple[str, int]], seed: int, recipe: Recipe) -> None:
    """Write a picture of an image, clean and corrupted. image: its path; output: the path of the picture; cells: the
    (corruption, severity) to show. Raises `UsageError` for an output that is neither .png nor .jpg, `DataError` for a
    bad image."""
    from hoicli.io.opened_files import readable

    suffix = Path(output).suffix.lower()
    if suffix not in (".png", ".jpg", ".jpeg"):
        raise UsageError(f"{arg('preview')}: give the picture to draw with {arg('output', like='FILE.png')} (or .jpg)")
    with readable(image):
        data = Path(image).read_bytes()

    import cv2

    from hoicli.corruption.effects import contact_sheet
    from hoicli.corruption.images import decode

    try:
        picture = decode(data)
    except DataError as error:
        raise error.add_place(image) from None
    sheet = contact_sheet(picture.pixels[:, :, :3], cells, image_id=Path(image).stem, seed=seed, recipe=recipe)
    write_output(output, bytes(cv2.imencode(suffix, cv2.cvtColor(sheet, cv2.COLOR_RGB2BGR))[1]))
