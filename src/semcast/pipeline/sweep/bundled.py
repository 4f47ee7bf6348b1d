"""The specs of the papers' experiments, which are part of the package."""

from pathlib import Path

import semcast
from semcast.pipeline.sweep.spec import SpecError

FOLDER = Path(semcast.__file__).parent / "experiments"
ALL = "all"


def bundled() -> dict[str, Path]:
    """The specs by name; none where the package was imported from an archive."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def spec_paths(asked: str) -> list[Path]:
    """The files that a word on the command line means: a file, the name of a bundled spec, or "all"."""
    specs = bundled()
    if asked == ALL and not Path(asked).exists():
        return list(specs.values())
    if asked in specs and not Path(asked).exists():
        return [specs[asked]]
    if not Path(asked).exists():
        raise SpecError(f"{asked}: no such file, nor one of the bundled specs: {', '.join(specs)}")
    return [Path(asked)]
