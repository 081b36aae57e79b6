"""How V-COCO's 29 verbs of the HOI-A layout are numbered: two orders are in use under one file name.

Each entry is `action_role`, or the action alone where it has no role. Both count from 0.
"""

from __future__ import annotations

VCOCO_ORDERS: dict[str, tuple[str, ...]] = {
    # hitachi-rd-cv/qpic convert_vcoco_annotations.py, datasets/vcoco_eval.py; CDN and GEN-VLKT copied it
    "qpic": (
        *("hold_obj", "stand", "sit_instr", "ride_instr", "walk", "look_obj", "hit_instr", "hit_obj", "eat_obj"),
        *("eat_instr", "jump_instr", "lay_instr", "talk_on_phone_instr", "carry_obj", "throw_obj", "catch_obj"),
        *("cut_instr", "cut_obj", "run", "work_on_computer_instr", "ski_instr", "surf_instr", "skateboard_instr"),
        *("smile", "drink_instr", "kick_obj", "point_instr", "read_obj", "snowboard_instr"),
    ),
    # YueLiao/PPDM src/lib/eval/vcoco_eval.py
    "ppdm": (
        *("surf_instr", "ski_instr", "cut_instr", "walk", "cut_obj", "ride_instr", "talk_on_phone_instr", "kick_obj"),
        *("work_on_computer_instr", "eat_obj", "sit_instr", "jump_instr", "lay_instr", "drink_instr", "carry_obj"),
        *("throw_obj", "eat_instr", "smile", "look_obj", "hit_instr", "hit_obj", "snowboard_instr", "run"),
        *("point_instr", "read_obj", "hold_obj", "skateboard_instr", "stand", "catch_obj"),
    ),
}


def verb_and_role(entry: str) -> tuple[str, str]:
    """("hit", "instr") of hit_instr, ("walk", "") of walk."""
    for role in ("obj", "instr"):
        if entry.endswith(f"_{role}"):
            return entry[: -len(role) - 1], role
    return entry, ""
