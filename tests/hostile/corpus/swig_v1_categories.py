"""Metadata."""

__all__ = ["SWIG_ACTIONS"]

SWIG_CATEGORIES = [
    {"id": 0, "name": "person", "noun_id": "n00007846"},
    {"id": 1, "name": "paper", "noun_id": "n14974264"},
    {"id": 2, "name": "car", "noun_id": "n02958343"},
    {"id": 3, "name": "wall", "noun_id": "n04546855"},
    {"id": 4, "name": "knife", "noun_id": "n03623556"},
    {"id": 5, "name": "wood", "noun_id": "n15098161"},
]

SWIG_ACTIONS = [
    {"id": 0, "name": "adjusting"},
    {"id": 1, "name": "admiring"},
    {"id": 2, "name": "aiming"},
    {"id": 3, "name": "applauding"},
]

SWIG_INTERACTIONS = [
    {"id": 0, "name": "x", "action_id": 0, "object_id": 1, "frequency": 1, "evaluation": 1},
    {"id": 1, "name": "y", "action_id": 3, "object_id": 5, "frequency": 2, "evaluation": 0},
]
