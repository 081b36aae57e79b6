"""What the files of V-COCO's users share: numbered action-roles, and how images are named.

Every file names a COCO image its own way; records name it by COCO's number, so that all of them join.
"""

from __future__ import annotations

import re
from typing import Any

from hoicli.converters.context import Context, entry
from hoicli.errors import DataError
from hoicli.records.names import image_id_of
from hoicli.vocabulary.numberings import VCOCO_ORDERS, verb_and_role


def action_roles(context: Context) -> list[tuple[str, str | None]]:
    """(verb, role) by the number a file gives them: PPDM's order for formats called so, otherwise QPIC's."""
    order = VCOCO_ORDERS["ppdm" if context.format.startswith("ppdm") else "qpic"]
    return [action_role(name, context) for name in order]


def action_role(name: str, context: Context) -> tuple[str, str | None]:
    """(verb, role) of `hold_obj` or `hold obj`; the role of `walk` is None. Raises `DataError` for anything else."""
    verb, role = verb_and_role(name.replace(" ", "_"))
    if (verb, role) in context.vocabulary.interaction_ids:
        return verb, role or None
    raise DataError(f"{name!r} is no V-COCO action with its role, such as hold_obj or walk")


def statement(
    subject: int,
    object_: int | None,
    number: Any,
    field: str,
    names: list[tuple[str, str | None]],
    *,
    base: int = 0,
) -> dict[str, Any]:
    """A triplet of an action-role numbered from `base`; an object below 0 is none, and one without role has none,
    whatever the file says."""
    verb, role = entry(names, number, field, base=base)
    if role is None:
        return {"subject": subject, "object": None, "verb": verb}
    given = None if object_ is None or object_ < 0 else object_
    return {"subject": subject, "object": given, "verb": verb, "role": role}


_NUMBER = re.compile(r"(?:COCO_\w+_)?0*(\d+)")


def coco_number(name: Any) -> int:
    """COCO's image number of a file name (COCO_val2014_000000000328.jpg) or id. Raises `DataError` for another name."""
    match = _NUMBER.fullmatch(image_id_of(str(name)))
    if match is None:
        raise DataError(f"{name!r} is no COCO image name such as COCO_val2014_000000000328.jpg", field=".file_name")
    return int(match[1])
