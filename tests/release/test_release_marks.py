"""The copy of the sources that is compiled: the same lines, and marks at classes others may derive from."""

from pathlib import Path

import pytest
from tools.wheel import __main__ as wheel
from tools.wheel.modules import open_classes, to_compile
from tools.wheel.staging import IMPORT, MARK, with_marks

SOURCE = Path(__file__).parents[2] / "src"


def test_marks_stand_on_empty_lines() -> None:
    text = '"""A."""\n\nimport x\n\n\nclass A:\n    pass\n\n\n# Why.\nclass B(A):\n    pass\n'
    marked = with_marks(text, ["A", "B"])
    rest = f"{MARK}\nclass A:\n    pass\n\n{MARK}\n# Why.\nclass B(A):\n    pass\n"
    assert marked == f'"""A."""\n{IMPORT}\nimport x\n\n{rest}'


@pytest.mark.parametrize("path", to_compile(SOURCE), ids=lambda path: path.stem)
def test_lines_stay_where_they_are(path: Path) -> None:
    text, names = path.read_text("utf8"), open_classes(path, SOURCE)
    marked = with_marks(text, names)
    before, after = text.split("\n"), marked.split("\n")
    assert len(before) == len(after)
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert changed == ([IMPORT] + [MARK] * len(names) if names else [])


def test_no_module_with_structs_is_compiled() -> None:
    names = {str(path.relative_to(SOURCE / "semcast")) for path in to_compile(SOURCE)}
    assert "protocols/ring/rotation.py" in names
    assert "protocols/vsync/stream.py" in names
    assert not {"core/messages.py", "core/outbox.py", "protocols/ring/frames.py"} & names


def test_without_a_compiler_the_wheel_is_pure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr("sys.argv", ["wheel", "--outdir", str(tmp_path)])
    wheel.main()
    assert "not found: a C compiler (no-such-compiler)" in capsys.readouterr().out
    (built,) = tmp_path.glob("*.whl")
    assert built.name.endswith("-py3-none-any.whl")
