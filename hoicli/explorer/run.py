"""An explorer from the options of its command."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hoicli.diagnosis.columns import TruthTable, TypedPredictions, truth_table
from hoicli.diagnosis.run import DiagnosedModel
from hoicli.errors import UsageError
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.slices import CLASSES, IMAGES, Slice
from hoicli.evaluation.slicing import image_parts
from hoicli.explorer.content import Explored, page_files
from hoicli.explorer.folder import write_folder
from hoicli.explorer.pictures import image_facts, pictures_in
from hoicli.explorer.server import Explorer
from hoicli.io.messages import note
from hoicli.io.streams import Stream

NOT_AT_HAND = "image not at hand"
NO_FOLDER = "no picture: --images was not given"


class Collecting:
    """Makes the collectors of all models, and keeps the one ground truth that they share."""

    def __init__(self, slices: Sequence[Slice] = ()) -> None:
        """slices: those of images and triplets that the page filters by; those of classes it makes itself."""
        self.of_images = [slice_ for slice_ in slices if slice_.of == IMAGES]
        self.of_triplets = [slice_ for slice_ in slices if slice_.of not in (IMAGES, CLASSES)]
        self._truth: tuple[GroundTruth, TruthTable] | None = None

    def __call__(self, truth: GroundTruth, protocol: Protocol) -> TypedPredictions:
        """A collector, as `diagnose_models` asks for it."""
        if self._truth is None:
            self._truth = truth, truth_table(truth, protocol, self.of_triplets)
        return TypedPredictions(protocol, self.of_triplets)

    def explored(self, models: Sequence[DiagnosedModel], gt: Stream) -> Explored:
        """What the page shows; gt is read once more, for the names and sizes of the images."""
        if self._truth is None:
            raise UsageError("the errors are of predictions with --gt, not of match records")
        truth, table = self._truth
        parts = [(slice_, image_parts(slice_, truth.scenes, truth.vocabulary)) for slice_ in self.of_images]
        return Explored(
            models,
            [model.kept.table(table) for model in models],
            table,
            image_facts(table.image_ids, gt),
            [(slice_, part[:, table.order]) for slice_, part in parts],
            self.of_triplets,
        )


def write_explorer(explored: Explored, folder: str, images: str | None, how: str) -> None:
    """Write the page to a folder, as `folder.write_folder`."""
    pictures, behind = pictures_in(images, explored.truth.image_ids, explored.facts)
    write = partial(page_files, explored, pictures, NO_FOLDER if images is None else NOT_AT_HAND)
    write_folder(folder, write(), behind, how)


def serve_explorer(explored: Explored, port: int, images: str | None) -> None:
    """Serve the page on this machine until Ctrl-C."""
    pictures, behind = pictures_in(images, explored.truth.image_ids, explored.facts)
    files = dict(page_files(explored, pictures, NO_FOLDER if images is None else NOT_AT_HAND))
    with Explorer(port, files, behind) as server:
        note(f"the explorer is at {server.url} (Ctrl-C ends it)", asked=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt as stop:
            if type(stop) is not KeyboardInterrupt:  # a signal that asks the process to end
                raise
