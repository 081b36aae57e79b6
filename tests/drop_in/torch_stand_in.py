"""NumPy in place of the few functions of PyTorch that released post-processing calls, so that it runs without torch."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.drop_in import released


class Tensor(released.Tensor):
    """An array with the methods of a tensor that the released code calls."""

    def __iter__(self) -> Any:
        return (tensor(part) for part in np.asarray(self))

    def max(self, dim: int | None = None, **numpy: Any) -> Any:  # type: ignore[override]
        if dim is None or numpy:
            return np.asarray(self).max(dim, **numpy)
        return tensor(np.asarray(self).max(dim)), tensor(np.asarray(self).argmax(dim))

    def argmax(self, *arguments: Any, **named: Any) -> Any:
        return np.asarray(self).argmax(*arguments, **named)

    def sigmoid(self) -> Tensor:
        return tensor(1 / (1 + np.exp(-np.asarray(self))))

    def unbind(self, dim: int = 0) -> list[Tensor]:
        return [tensor(part) for part in np.moveaxis(np.asarray(self), dim, 0)]

    def unsqueeze(self, dim: int) -> Tensor:
        return tensor(np.expand_dims(self, dim))

    def squeeze(self, dim: int | None = None) -> Tensor:  # type: ignore[override]
        axes = range(self.ndim) if dim is None else [dim]
        return tensor(np.squeeze(np.asarray(self), tuple(axis for axis in axes if self.shape[axis] == 1)))

    def numel(self) -> int:
        return self.size

    def view(self, *shape: Any) -> Any:  # type: ignore[override]
        return self.reshape(*shape) if isinstance(shape[0], int | tuple) else super().view(*shape)

    def expand(self, *shape: int) -> Tensor:
        sides = [own if side == -1 else side for own, side in zip(self.shape, shape, strict=True)]
        return tensor(np.broadcast_to(self, sides))

    def split(self, counts: list[int]) -> list[Tensor]:
        return [tensor(part) for part in np.split(np.asarray(self), np.cumsum(counts)[:-1])]

    def prod(self, dim: int) -> Tensor:  # type: ignore[override]
        return tensor(np.asarray(self).prod(dim))

    def pow(self, exponent: float) -> Tensor:
        return tensor(np.asarray(self) ** exponent)

    def argsort(self, *, descending: bool = False) -> Tensor:  # type: ignore[override]
        array = np.asarray(self)
        return tensor(np.argsort(-array if descending else array, kind="stable"))

    def unique(self, *, return_counts: bool = False) -> Any:
        values, counts = np.unique(np.asarray(self), return_counts=True)
        return (tensor(values), tensor(counts)) if return_counts else tensor(values)

    def long(self) -> Any:
        return self.astype(np.int64)


def tensor(values: Any, dtype: Any = None) -> Tensor:
    return np.asarray(values, dtype).view(Tensor)


class Module:
    def register_buffer(self, name: str, values: Any) -> None:
        setattr(self, name, values)

    def __call__(self, *arguments: Any) -> Any:
        return self.forward(*arguments)  # type: ignore[attr-defined]


def softmax(logits: Any, dim: int) -> Tensor:
    powers = np.exp(np.asarray(logits) - np.asarray(logits).max(dim, keepdims=True))
    return tensor(powers / powers.sum(dim, keepdims=True))


def as_tensor(values: Any, **_: Any) -> Tensor:
    """torch takes whole numbers divided by a tensor of whole numbers as single precision."""
    array = np.asarray(values)
    return tensor(array.astype(np.float32) if array.dtype.kind == "f" else array)


F = SimpleNamespace(softmax=softmax)
nn = SimpleNamespace(Module=Module)
torch = SimpleNamespace(
    no_grad=lambda: lambda function: function, as_tensor=as_tensor, from_numpy=tensor,
    stack=lambda parts, dim=0: tensor(np.stack(parts, dim)),
    cat=lambda parts, dim=0: tensor(np.concatenate(parts, dim)),
    full_like=lambda like, value: tensor(np.full_like(like, value)),
    zeros_like=lambda like: tensor(np.zeros_like(like)), arange=lambda count, **_: tensor(np.arange(count)),
    nonzero=lambda mask: tensor(np.argwhere(mask)), sigmoid=lambda values: values.sigmoid(),
    min=lambda one, other: tensor(np.minimum(one, other)),
)  # fmt: skip


def released_part(path: Path, name: str, known: dict[str, Any]) -> Any:
    """The class, function or method of this name in a released file, without its decorators and the file's imports; it
    knows this module's names and those that are `known`."""
    found = [node for node in ast.walk(ast.parse(path.read_text())) if getattr(node, "name", "") == name]
    assert isinstance(found[0], ast.FunctionDef | ast.ClassDef)
    found[0].decorator_list = []
    names = globals() | {"defaultdict": defaultdict} | known
    exec(compile(ast.Module([found[0]], []), str(path), "exec"), names)
    return names[name]


def box_cxcywh_to_xyxy(boxes: Tensor) -> Tensor:
    x, y, width, height = boxes.unbind(-1)
    return tensor(np.stack([x - 0.5 * width, y - 0.5 * height, x + 0.5 * width, y + 0.5 * height], axis=-1))
