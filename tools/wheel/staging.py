"""A copy of the project that is built with mypyc: it has a `setup.py`, and sources with marks.

Programs, tests and mutants derive from classes of the package. mypyc lets only compiled classes derive from
compiled ones, unless these are marked. The marks are put into the copy, on lines that are empty otherwise, so
that the lines of a traceback are those of the source.
"""

import ast
import shutil
from pathlib import Path

from tools.wheel.modules import open_classes, to_compile

PROJECT = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")
MARK = "@mypyc_attr(allow_interpreted_subclasses=True)"
IMPORT = "from semcast.marks_for_mypyc import mypyc_attr"
MARKS = '''"""Read by mypyc, and never by a program: no package has to be installed for a mark."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    mypyc_attr = None
'''
SETUP = """import os
from concurrent.futures import ThreadPoolExecutor

from mypyc.build import mypycify
from setuptools import setup
from setuptools.command.build_ext import build_ext


class BuildInParallel(build_ext):
    def build_extensions(self):
        one_by_one = self.compiler.compile

        def compile(sources, *arguments, **options):
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                each = pool.map(lambda source: one_by_one([source], *arguments, **options), sources)
                return [made for objects in each for made in objects]

        self.compiler.compile = compile
        super().build_extensions()


MODULES = {modules}
extensions = mypycify(
    ["--config-file", "mypy.ini", *MODULES],
    opt_level="{level}",
    debug_level="0",
    multi_file=True,
    group_name="semcast",
)
setup(ext_modules=extensions, cmdclass={{"build_ext": BuildInParallel}})
"""
MYPY = """[mypy]
mypy_path = marked
explicit_package_bases = True
follow_imports = silent
"""


def stage(project: Path, folder: Path, level: int) -> list[str]:
    """Fill an empty folder; the names of the modules to compile."""
    source, marked = project / "src", folder / "marked"
    for name in PROJECT:
        shutil.copy(project / name, folder)
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(source, folder / "src", ignore=ignore)
    shutil.copytree(source, marked, ignore=ignore)
    for package in (folder / "src" / "semcast", marked / "semcast"):
        (package / "marks_for_mypyc.py").write_text(MARKS, "utf8")
    modules = [path.relative_to(source) for path in to_compile(source)]
    for module in modules:
        text = (source / module).read_text("utf8")
        (marked / module).write_text(with_marks(text, open_classes(source / module, source)), "utf8")
    (folder / "mypy.ini").write_text(MYPY, "utf8")
    paths = [str(Path("marked") / module) for module in modules]
    (folder / "setup.py").write_text(SETUP.format(modules=paths, level=level), "utf8")
    return [".".join(module.with_suffix("").parts) for module in modules]


def with_marks(text: str, names: list[str]) -> str:
    """The text of a module with its classes of these names marked, on as many lines."""
    lines, tree = text.split("\n"), ast.parse(text)
    starts = [node.lineno - 1 for node in tree.body if isinstance(node, ast.ClassDef) and node.name in names]
    if not starts:
        return text
    docstring = tree.body[0].end_lineno
    assert docstring is not None
    assert lines[docstring] == "", "no empty line after the docstring of a module"
    lines[docstring] = IMPORT
    for start in starts:
        lines[max(place for place in range(start) if lines[place] == "")] = MARK
    return "\n".join(lines)
