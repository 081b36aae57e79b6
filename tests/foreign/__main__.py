"""Write all foreign fixtures: python -m tests.foreign."""

from __future__ import annotations

from tests.foreign import fixtures
from tests.support.project import ROOT

if __name__ == "__main__":
    for fixture in fixtures().values():
        fixture.make(*fixture.records(), fixture.path)
        print(fixture.path.relative_to(ROOT))
