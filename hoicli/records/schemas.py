"""The JSON Schemas of formats/, wherever they are installed."""

from pathlib import Path

SUFFIX = ".schema.json"


def _folder() -> Path:
    """formats/ inside the installed package, or at the top of a checkout."""
    inside = Path(__file__).parents[1] / "formats"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "formats"


def kinds() -> list[str]:
    """The record kinds that have a schema."""
    return sorted(path.name.removesuffix(SUFFIX) for path in _folder().glob(f"*{SUFFIX}"))


def schema_text(kind: str) -> str:
    """The schema of a kind (one of `kinds()`), as it stands in formats/."""
    return (_folder() / f"{kind}{SUFFIX}").read_text(encoding="utf-8")
