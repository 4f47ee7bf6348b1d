"""The report: what the results say is on the page, what is missing is named, and nothing breaks the page."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lacking import lacking

from semcast.cli.main import main
from semcast.pipeline.report import charts
from semcast.pipeline.report.drawing import draw
from semcast.pipeline.report.findings import find
from semcast.pipeline.report.layers import layered, layers_section
from semcast.pipeline.report.live import Live, read_live
from semcast.pipeline.report.markup import Markup, table, tag
from semcast.pipeline.report.numbers import shown
from semcast.pipeline.report.page import Experiment, Origin, Traces, page
from semcast.pipeline.report.results import Results, read_results
from semcast.pipeline.report.traces import (
    Recording,
    Recordings,
    disagreements,
    likeness,
    read_trace_spec,
    traces_section,
)
from semcast.pipeline.sweep.bundled import FOLDER as EXPERIMENTS
from semcast.pipeline.sweep.figures import Row, chosen
from semcast.pipeline.sweep.spec import Spec, SpecError, read_spec

SPECS = sorted(EXPERIMENTS.glob("*.toml"))
HOSTILE = "<script>alert('x')</script> & \"quoted\""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")

SMALL = """
experiment = "f3"
title = "small"
[grid]
n = [10, 20]
r = [0.25, 0.5]
[paper]
source = "somewhere"
numbers = [{ what = "at 20", value = 50, column = "simulated_throughput", where = { n = 20, r = 0.5 } }]
"""
REPORT = """
[report]
differs = ["ours is {twenty:.1f}"]
checks = [
  { says = "grows", rising = ["ten", "twenty"] },
  { says = "the same", equal = ["ten", "twenty"] },
]
[report.ours]
ten = { column = "simulated_throughput", where = { n = 10, r = 0.5 } }
twenty = { column = "simulated_throughput", where = { n = 20, r = 0.5 } }
[[report.plots]]
title = "Throughput"
x = "n"
lines = [
  { column = "simulated_throughput", by = ["r"], label = "r = {r}" },
  { column = "model_throughput", by = ["r"], label = "model, r = {r}", stroke = "dashed" },
]
"""


def spec_of(folder: Path, text: str, name: str = "small") -> Spec:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return read_spec(path)


def write_table(folder: Path, spec: Spec, rows: Sequence[Mapping[str, object]]) -> None:
    path = folder / spec.name / "table.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)


def rows_of(spec: Spec, figures: Callable[[Row], Mapping[str, object]]) -> list[dict[str, object]]:
    names = dict.fromkeys(name for cell in spec.cells for name in cell.parameters)
    return [
        {"experiment": spec.experiment, "cell": cell.id, "status": "ok", "error": None}
        | dict.fromkeys(names)
        | cell.parameters
        | dict(figures(cell.parameters))
        for cell in spec.cells
    ]


def throughput(row: Row) -> dict[str, object]:
    n, r = row["n"], row["r"]
    assert isinstance(n, int)
    assert isinstance(r, float)
    return {"model_throughput": n * r * 5.0, "simulated_throughput": n * r * 5.0 - 1}


def made_up(spec: Spec) -> list[dict[str, object]]:
    """Figures for every column that the spec speaks of."""
    columns = [number.column for number in spec.paper.numbers] if spec.paper else []
    if spec.report:
        columns += [choice.column for choice in spec.report.ours.values()]
        columns += [line.column for plot in spec.report.plots for line in plot.lines]
    numbers = {cell.id: number for number, cell in enumerate(spec.cells)}
    rows = rows_of(spec, lambda _: {})
    for row in rows:
        number = numbers[str(row["cell"])]
        row |= {
            column: 0.05 + (number * 7 + at) % 11 / 12 for at, column in enumerate(dict.fromkeys(columns))
        }
    return rows


def the_page(experiments: Sequence[Results], traces: Sequence[Traces] = (), live: Sequence[Live] = ()) -> str:
    origin = Origin("today", "0", "semcast report", "2 cores")
    found = [
        Experiment(each, find(each.spec, each.rows), f"semcast sweep {each.spec.name}")
        for each in experiments
    ]
    return page(origin, found, traces, live)


class Balance(HTMLParser):
    """Every element that is opened is closed, and in order."""

    VOID = ("meta", "link")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def elements(text: str) -> list[str]:
    """All elements of a page that is well formed, needs nothing from elsewhere and has no code in it."""
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert "script" not in parser.seen
    assert not re.search(r'(?:src|href)="(?!#|data:,")', text)
    assert "url(" not in text
    assert "@import" not in text
    for drawn in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(drawn)  # noqa: S314 (our own)
        assert "nan" not in drawn
    return parser.seen


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", HOSTILE, tag("b", "x"), title=HOSTILE).count("<") == 4
    assert "<script" not in table([HOSTILE], [[HOSTILE]])
    assert tag("p", Markup("<i></i>")) == "<p><i></i></p>"


@given(st.floats(1e-6, 1e9))
def test_axes_have_room(top: float) -> None:
    assert top <= charts.top_of([top]) * (1 + 1e-9) <= 2 * top * (1 + 1e-9)


def test_numbers_as_people_write_them() -> None:
    assert [shown(value) for value in (0, 0.5, 1234567.8, float("inf"))] == ["0", "0.5", "1,234,568", "∞"]
    assert charts.top_of([]) == 1
    assert charts.top_of([0.0, 0.0]) == 1


def chart_of(xs: Sequence[float], across: Literal["swept", "round", "log"]) -> list[str]:
    """What is written below a plot of these values."""
    axes = charts.Axes("", "", 1.0, across)
    points = tuple(charts.Point(x, 0.5, 0.5, 0.5) for x in xs)
    drawn = charts.line_chart([charts.Series("line", points, 0)], [], axes, 455, 290)
    texts = [text.text or "" for text in ElementTree.fromstring(drawn).iter("text")]  # noqa: S314
    return texts[: texts.index("0")]


def test_values_below_a_plot() -> None:
    assert chart_of([10, 20, 40], "swept") == ["10", "20", "40"]
    assert chart_of([10, 11, 40], "swept") == ["10", "20", "30", "40"]
    assert chart_of([1, 30, 1000], "log") == ["1", "10", "100", "1,000"]
    assert chart_of([1, 30], "log") == ["1", "2", "5", "10", "20"]
    assert chart_of([7], "swept") == ["7"]


def test_colours_are_those_of_the_page() -> None:
    """So that they are others by night; and no name is in two figures."""
    series = [charts.Series(f"{number}", (charts.Point(1, 1, 0, 2),), number) for number in range(8)]
    drawn = charts.line_chart(series, [], charts.Axes("x", "y", 2.0), 455, 290)
    assert not re.findall(r"#[0-9a-f]{6}\b", drawn.replace('"#', '"'))
    assert all(f"var(--k{number})" in drawn for number in range(8))
    key = charts.legend(series, marks=True, bars=True)
    assert not set(re.findall(r' id="([^"]*)"', drawn)) & set(re.findall(r' id="([^"]*)"', key))


def test_results_that_are_there(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL)
    write_table(tmp_path, spec, rows_of(spec, throughput))
    results = read_results(spec, tmp_path)
    assert results.complete
    assert results.state == "4 of 4 cells"
    assert len(results.rows) == 4


def test_results_that_are_not_there(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL)
    assert read_results(spec, tmp_path).state == "0 of 4 cells, 4 not run"
    rows = rows_of(spec, throughput)[:3]
    rows[0] |= {"status": "failed", "error": HOSTILE}
    rows.append({**rows[1], "cell": "of an older spec"})
    write_table(tmp_path, spec, rows)
    results = read_results(spec, tmp_path)
    assert results.state == "2 of 4 cells, 1 not run, 1 without figures"
    text = the_page([results])
    elements(text)
    assert "1 not run" in text
    assert "semcast sweep small" in text


def test_a_table_that_cannot_be_read_is_missing(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL)
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "table.parquet").write_bytes(b"PAR1 no")
    results = read_results(spec, tmp_path)
    assert results.missing == 4
    assert "cannot be read" in results.state


def test_numbers_and_claims(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL + REPORT)
    found = find(spec, [dict(row) for row in numeric(spec)])
    (number,) = found.numbers
    assert number.agrees
    assert number.difference == pytest.approx(-0.02)
    assert [claim.holds for claim in found.claims] == [True, False]
    assert [claim.values for claim in found.claims] == ["24 < 49", "24, 49"]
    assert found.differs == ("ours is 49.0",)
    assert found.tally == (2, 3)


def numeric(spec: Spec) -> list[Row]:
    return [{**cell.parameters, **throughput(cell.parameters)} for cell in spec.cells]  # type: ignore[dict-item]


def test_no_result_is_not_a_verdict(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL + REPORT)
    found = find(spec, [])
    assert found.numbers[0].agrees is None
    assert [claim.holds for claim in found.claims] == [None, None]
    assert found.differs == ("ours is -",)
    assert found.tally == (0, 0)


def test_what_hardly_rises_does_not_rise(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL + REPORT)
    rows: list[Row] = [{**cell.parameters, "simulated_throughput": 100.0} for cell in spec.cells]
    rows[-1] = {**rows[-1], "simulated_throughput": 100.5}
    grows, same = find(spec, rows).claims
    assert (grows.holds, grows.values) == (False, "100 ≈ 100.5")
    assert same.holds


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('rising = ["ten"', 'rising = ["eleven"', "eleven is not in report.ours"),
        ("{twenty:.1f}", "{thirty}", "thirty is not in report.ours"),
        ("{twenty:.1f}", "{twenty:nonsense}", "not a format"),
        ('equal = ["ten", "twenty"]', 'equal = ["ten"]', "rising or equal"),
        ('x = "n"', 'x = "n"\ncolour = "red"', "colour"),
    ],
)
def test_a_report_that_cannot_be_is_refused(tmp_path: Path, before: str, after: str, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        spec_of(tmp_path, SMALL + REPORT.replace(before, after))


def test_a_plot_has_a_line_for_each_value_and_marks_the_paper(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL + REPORT)
    assert spec.report is not None
    assert spec.paper is not None
    drawn = draw(spec.report.plots[0], numeric(spec), spec.paper.numbers)
    chart = ElementTree.fromstring(re.findall(r"<svg.*?</svg>", drawn, re.DOTALL)[0])  # noqa: S314
    titles = [title.text for title in chart.iter("title")]
    assert chart.get("role") == "img"
    assert "r = 0.25" in chart.get("aria-label", "")
    for line in ("r = 0.25", "r = 0.5", "model, r = 0.25", "model, r = 0.5"):
        assert titles.count(line) == 1
    assert "r = 0.5: 10 → 24" in titles
    assert titles.count("paper, at 20: 20 → 50") == 2  # the mark, and what sets it off from the lines
    assert sum("var(--paper)" in use.get("style", "") for use in chart.iter("use")) == 1
    assert "no results to draw" in draw(spec.report.plots[0], [], spec.paper.numbers)


def test_seeds_are_drawn_as_mean_and_range(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL + REPORT)
    assert spec.report is not None
    rows: list[Row] = [{"n": 10, "r": 1, "simulated_throughput": y} for y in (10, 20, 60)]
    drawn = draw(spec.report.plots[0], rows, ())
    chart = ElementTree.fromstring(re.findall(r"<svg.*?</svg>", drawn, re.DOTALL)[0])  # noqa: S314
    titles = [title.text for title in chart.iter("title")]
    assert "r = 1: 10 → 30" in titles
    assert "r = 1: 10 to 60" in titles


def test_layers_compare_what_two_of_them_give(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL)
    (found,) = layered([Results(spec, tuple(numeric(spec)))])
    gap = found.gap("model", "buffer")
    assert gap is not None
    assert gap.cells == 4
    assert gap.mean == pytest.approx(-0.02)
    assert gap.largest == pytest.approx(0.02)
    assert found.gap("model", "protocol") is None
    assert "-2.0 % (≤ 2 %)" in layers_section([Results(spec, tuple(numeric(spec)))])


def test_a_spec_without_a_report_is_shown_too(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SMALL)
    text = the_page([Results(spec, tuple(numeric(spec)))])
    assert "figure" in elements(text)  # of the layers
    assert "All 4 rows" in text
    assert "agrees" in text
    assert "what differs, and why" in text


def test_sections_come_in_the_order_of_the_first_table(tmp_path: Path) -> None:
    """Families, and names inside of them; so do the contents, and what is missing."""
    specs = [spec_of(tmp_path, SMALL, name) for name in ("c1", "d9", "m1", "o2", "q1", "w1", "x1")]
    results = [Results(spec, tuple(numeric(spec))) for spec in specs]
    trace_spec = read_trace_spec(EXPERIMENTS / "profile" / "g1.toml")
    text = the_page(results, [Traces(trace_spec, "g1", absent="None.")])
    wanted = ["o2", "m1", "g1", "q1", "w1", "c1", "d9", "x1", "layers"]
    assert re.findall(r'<section id="(\w+)"', text) == wanted
    contents = text[text.index("<nav>") : text.index("</nav>")]
    assert re.findall(r'href="#(\w+)"', contents) == wanted
    first = text[text.index('class="overview"') : text.index("<nav>")]
    assert re.findall(r'<a href="#(\w+)"', first) == [name for name in wanted[:-1] if name != "g1"]
    missing = the_page([Results(spec, (), missing=4) for spec in specs])
    missing = missing[missing.index('id="missing"') : missing.index("<nav>")]
    assert re.findall(r"<li>(\w+) \(", missing) == [name for name in wanted[:-1] if name != "g1"]


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    quoted = json.dumps(HOSTILE)
    text = (SMALL + REPORT).replace('"small"', quoted).replace('"somewhere"', quoted)
    for plain in ('"at 20"', '"grows"', '"Throughput"', '"r = {r}"'):
        text = text.replace(plain, quoted)
    spec = spec_of(tmp_path, text)
    rows = tuple({**row, "note": HOSTILE} for row in numeric(spec))
    trace_spec = read_trace_spec(EXPERIMENTS / "profile" / "g1.toml")
    recordings = Recordings(HOSTILE, HOSTILE, (Recording(HOSTILE, {}, ((1, 0.1), (10, 0.2)), {}),))
    shown_page = the_page([Results(spec, rows)], [Traces(trace_spec, "g1", (recordings,))])
    assert "svg" in elements(shown_page)
    assert "<script" not in shown_page


def test_recordings_beside_the_paper() -> None:
    spec = read_trace_spec(EXPERIMENTS / "profile" / "g1.toml")
    figures = {"never_obsolete_share": 0.25, "R10": 0.1234, "messages": 1000}
    same = Recording("game", figures, ((1, 0.0), (1000, 0.7)), {"R10": 0.12344, "rounds": 42.0})
    other = Recording("other", figures, ((1, 0.0), (1000, 0.7)), {"R10": 0.125})
    assert disagreements(same) == []
    assert disagreements(other) == ["R10"]
    text = traces_section(spec, [Recordings("quake-mvd", "its readme", (same, other))])
    for expected in ("41.9 %", "25 %", "its readme", "these differ: other: R10", "11,696", "Licence: MIT"):
        assert expected in text


def test_without_recordings_the_page_says_so() -> None:
    spec = read_trace_spec(EXPERIMENTS / "profile" / "g1.toml")
    text = the_page([], [Traces(spec, "g1", absent="No recordings in nowhere.")])
    elements(text)
    assert "No recordings in nowhere." in text


TABLES = ("e1", "e2", "o1")
"""What they have is a table: a few words or counts, nothing over which they could be drawn."""


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_spec_speaks_of_cells_that_it_has(path: Path) -> None:
    spec = read_spec(path)
    assert spec.report is not None
    assert spec.report.plots or path.stem in TABLES
    cells: list[Row] = [cell.parameters for cell in spec.cells]
    for choice in spec.report.ours.values():
        assert chosen(cells, choice.where, choice.absent), choice
    for number in spec.paper.numbers if spec.paper else ():
        assert chosen(cells, number.where), number
    for plot in spec.report.plots:
        rows = chosen(cells, plot.where, plot.absent)
        for panel in plot.panels:
            assert chosen(rows, panel.where, panel.absent), panel
        for line in plot.lines:
            assert chosen(rows, line.where, line.absent), line


def test_what_is_written_in_a_plot_is_not_rounded() -> None:
    """Places are, to the hundredth of a pixel."""
    points = tuple(charts.Point(x, x, x, x) for x in (0.001, 0.005, 0.05))
    axes = charts.Axes("loss", "loss", 0.05)
    drawn = charts.line_chart([charts.Series("loss", points, 0)], [], axes, 920, 340)
    assert {"0.001", "0.005", "0.05"} <= set(re.findall(">([0-9.]+)<", drawn))
    assert "loss: 0.005 → 0.005" in drawn
    assert not re.search(r' (x|y|d|transform)="[^"]*\d\.\d{3}', drawn)


def test_the_command_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec_of(tmp_path, SMALL + REPORT)
    out = tmp_path / "pages" / "report.html"
    asked = [
        "report",
        "--specs",
        str(tmp_path),
        "--results",
        str(tmp_path / "none"),
        "--no-data",
        "--out",
        str(out),
    ]
    assert main(asked) == 0
    said = capsys.readouterr()
    assert "small: 0 of 4 cells, 4 not run; semcast sweep" in said.err
    assert "1 experiments" in said.out
    elements(out.read_text(encoding="utf8"))
    assert main([*asked, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["experiments"]
    assert found["not_run"] == 4
    assert found["numbers"][0]["ours"] is None


def test_the_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--specs", str(tmp_path / "none")]) == 2
    spec_of(tmp_path, SMALL)
    assert main(["report", "--specs", str(tmp_path), "--no-data", "--out", str(tmp_path)]) == 2
    (tmp_path / "other.toml").write_text("nonsense")
    assert main(["report", "--specs", str(tmp_path)]) == 2
    assert "other.toml" in capsys.readouterr().err


LOOK = """<script>
const found = [];
for (const svg of document.querySelectorAll('.panel svg')) {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text:not(.value)')].filter(text => text.textContent);
  const boxes = texts.map(text => text.getBoundingClientRect());
  boxes.forEach((a, i) => {
    const name = texts[i].textContent;
    if (a.left < frame.left - 1 || a.right > frame.right + 1
        || a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
      found.push('outside: ' + name);
    const size = Math.min(a.width, a.height);
    if (size > 0 && size < 8.5 && name.length > 2) found.push('small: ' + name);
    boxes.slice(i + 1).forEach((b, j) => {
      if (a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
        found.push('overlap: ' + name + ' / ' + texts[i + 1 + j].textContent);
    });
  });
}
if (document.documentElement.scrollWidth > innerWidth) found.push('wider than the window');
document.title = 'plots ' + document.querySelectorAll('.panel svg').length + ' ' + JSON.stringify(found);
</script></body>"""


def test_a_browser_shows_it(tmp_path: Path) -> None:
    """On a desk and on a telephone: the page is made once, which takes longer than to show it."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        lacking(f"no browser: looked for {', '.join(BROWSERS)}")
    specs = [read_spec(path) for path in SPECS]
    for spec in specs:
        write_table(tmp_path / "sweep", spec, made_up(spec))
    trace_spec = read_trace_spec(EXPERIMENTS / "profile" / "g1.toml")
    curve = tuple((n, n / 1000) for n in (1, 10, 100, 1000))
    recordings = Recordings("quake-mvd", "", (Recording("game", {"messages": 1}, curve, {}),))
    text = the_page(
        [read_results(spec, tmp_path / "sweep") for spec in specs], [Traces(trace_spec, "g1", (recordings,))]
    )
    elements(text)
    at = tmp_path / "report.html"
    at.write_text(text.replace("</body>", LOOK), encoding="utf8")
    panels = text.count('class="panel"')
    assert panels > len(specs)
    for width in (1200, 420):
        shown = _shown(browser, at, width)
        assert "CONSOLE" not in shown.stderr
        assert f"<title>plots {panels} []</title>" in shown.stdout, re.findall("<title>.*", shown.stdout)[0]


def _shown(browser: str, page: Path, width: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            browser,
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *(f"--user-data-dir={page.parent / f'browser-{width}'}", f"--window-size={width},2000"),
            *("--enable-logging=stderr", "--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


RESULTS = """
## daemon

Measured on a quiet day.

| what / floor | value | floor | unit | ratio | target |
|---|--:|--:|---|--:|---|
| latency at 1,000/s from each of 3, median / direct | 1,649 | 902 | us | 1.83 | <= 150 us more |
| the same, 99 % / direct | 1,200 | 902 | us | 1.33 | <= 500 us more |
| one of 11 clients is stopped / none is | 95 | 100 | msg/s | 0.95 | >= 0.95 |
| joins of 1 client with 3 daemons / target | 35,739 | 20,000 | joins/s | 1.79 | >= 1 |
| the same, by CPU of the daemon / target | 50,000 | 20,000 | joins/CPU s | 2.50 |  |

## other

| one of 11 clients is stopped / none is | 1 | 100 | msg/s | 0.01 | >= 0.95 |
"""


def test_what_was_measured_live_is_held_against_its_targets(tmp_path: Path) -> None:
    results = tmp_path / "RESULTS.md"
    results.write_text(RESULTS)
    found = {path.stem: read_live(path, results) for path in sorted((EXPERIMENTS / "live").glob("*.toml"))}
    assert {name: each.tally for name, each in found.items()} == {
        "d1": (0, 0),
        "d2": (1, 2),
        "d3": (1, 1),
        "d4": (1, 1),
    }
    text = the_page([], live=list(found.values()))
    elements(text)
    for expected in ("latency at 1,000/s from each of 3, median: 1,649 us", "Measured on a quiet day."):
        assert expected in text
    assert "python -m benchmarks daemon --write" in text, "what was not measured is named"
    assert not read_live(EXPERIMENTS / "live" / "d4.toml", tmp_path / "none").rows


def test_every_live_row_is_one_of_the_results() -> None:
    """A benchmark that names its rows anew would leave the page without them."""
    for path in (EXPERIMENTS / "live").glob("*.toml"):
        found = read_live(path, Path(__file__).parents[2] / "benchmarks" / "RESULTS.md")
        for begins in found.spec.rows:
            assert any(row.what.startswith(begins) for row in found.rows), begins


def test_the_paper_s_recording_is_held_against_the_one_that_is_most_like_it() -> None:
    spec = read_trace_spec(EXPERIMENTS / "profile" / "g1.toml")
    near = Recording(spec.like, {"never_obsolete_share": 0.42}, ((1, 0.0),), {"rounds": 42.0})
    numbers = likeness(spec, [Recordings("quake-mvd", "", (near,))])
    assert [number.agrees for number in numbers] == [True, False, None, None]
    text = the_page([], [Traces(spec, "g1", (Recordings("quake-mvd", "", (near,)),))])
    elements(text)
    assert "rounds: 11,696, ours 42" in text
