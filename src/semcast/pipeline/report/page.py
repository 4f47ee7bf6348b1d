"""The page: one HTML file that needs nothing else."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from semcast.pipeline.report.drawing import draw
from semcast.pipeline.report.findings import CLOSE, Claim, Findings, Number
from semcast.pipeline.report.layers import layers_section
from semcast.pipeline.report.live import Live, command, live_section, off
from semcast.pipeline.report.markup import Content, Markup, joined, listed, prose, table, tag
from semcast.pipeline.report.numbers import percent, shown, signed
from semcast.pipeline.report.results import Results
from semcast.pipeline.report.style import CSS
from semcast.pipeline.report.traces import Recordings, TraceSpec, likeness, traces_section
from semcast.pipeline.sweep.figures import Row

HOW_TO_READ = (
    "“Model” is the papers' formula, “buffer” a simulation of nothing but a buffer, “protocol” the real "
    f"protocol code in virtual time. A number agrees if it is within {percent(CLOSE)} of the paper's; a "
    "claim is looked up in the results. Differences are shown as they are, with the reason where we know one."
)
LAYERS = (
    "Wherever two of them give the same figure: the mean difference over all cells and, in brackets, the "
    "largest one, in percent of the largest value. In a protocol the buffers of sender and receiver add up, "
    "where the model has one."
)

_LAYERS = "Model, buffer and protocol"
_INTERNAL = ("experiment", "cell", "status", "error")
_FAILURES = 5
"""How many are shown."""
_SHORT = 30
"""Characters of a sentence that says little."""
_SHOWN = 2
"""Of what differs, in the first table."""
_FAMILIES = (
    ("omfg", "Message obsolescence (Pereira, Rodrigues and Oliveira)"),
    ("teq", "Ring, extended virtual synchrony, replication (Amir)"),
    ("vw", "Causal and atomic multicast, many groups (Birman, Schiper and Stephenson)"),
    ("cl", "Gossip and loggers (Sun)"),
    ("d", "Daemons (ours)"),
)
"""The first letters of the names of experiments, in the order of the page."""
_BEYOND = "Beyond the papers"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and how the page was made."""

    date: str
    version: str
    command: str
    machine: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """One spec: what the sweep found, what it means, and how to run it."""

    results: Results
    findings: Findings
    command: str

    @property
    def name(self) -> str:
        """Of the spec."""
        return self.results.spec.name


@dataclass(frozen=True, slots=True)
class Traces:
    """The recordings, or why there are none."""

    spec: TraceSpec
    name: str
    found: tuple[Recordings, ...] = ()
    absent: str = ""


def page(
    origin: Origin, experiments: Sequence[Experiment], traces: Sequence[Traces], live: Sequence[Live] = ()
) -> str:
    """All of it."""
    experiments = sorted(experiments, key=lambda each: _place(each.name))
    parts = _parts(experiments, traces, live)
    sections = [_section(name, title, content(), label=name) for name, title, content in parts]
    sections.append(_section("layers", _LAYERS, _layers(experiments)))
    body = joined(
        [
            _header(origin),
            _overview(experiments, traces, live),
            _missing(experiments, live),
            _contents([(name, title) for name, title, _ in parts]),
            *sections,
        ]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>Semcast: the papers' figures and ours</title>\n"
        f'<link rel="icon" href="data:,">\n<style>{CSS}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n'
    )


def _parts(
    experiments: Sequence[Experiment], traces: Sequence[Traces], live: Sequence[Live]
) -> list[tuple[str, str, Callable[[], Markup]]]:
    """Name, title and contents of what has a section, in the order of the first table."""
    found: list[tuple[str, str, Callable[[], Markup]]] = [
        (each.name, each.results.spec.title, partial(_experiment, each)) for each in experiments
    ]
    found += [(each.name, each.spec.title, partial(_traces, each)) for each in traces]
    found += [(each.name, each.spec.title, partial(live_section, each)) for each in live]
    return sorted(found, key=lambda part: _place(part[0]))


def _header(origin: Origin) -> Markup:
    made = f"{origin.date} · semcast {origin.version} · {origin.machine}"
    return tag(
        "header",
        tag("h1", "The papers' figures and ours"),
        tag("p", made, tag("span", " · "), tag("code", origin.command), class_="soft"),
        tag(
            "p",
            HOW_TO_READ,
        ),
    )


def _overview(experiments: Sequence[Experiment], traces: Sequence[Traces], live: Sequence[Live]) -> Markup:
    """What there is of results, in a sentence and in a table; what is missing has a list of its own."""
    rows = {each.name: _glance(each) for each in experiments if each.results.rows}
    rows |= {each.name: _trace_glance(each) for each in traces if each.found}
    rows |= {each.name: _live_glance(each) for each in live if each.rows}
    head = ["", "experiment", "agrees", "what differs, and why", "paper", "results"]
    tallies = {each.name: each.findings.tally for each in experiments if each.results.rows}
    tallies |= {each.name: _trace_tally(each) for each in traces if each.found}
    tallies |= {each.name: each.tally for each in live if each.rows}
    found: list[Sequence[Content] | Markup] = []
    for family, names in groupby(sorted(rows, key=_place), key=family_of):
        named = list(names)
        found.append(_family(family, [tallies[name] for name in named], len(head)))
        found += [[tag("a", name, href=f"#{name}"), *rows[name]] for name in named]
    return tag("div", _summary(experiments), table(head, found, words=len(head)), class_="overview")


def _place(name: str) -> tuple[int, str]:
    """Families in the order of the papers, then what is ours."""
    order = "".join(letters for letters, _ in _FAMILIES)
    return (order.index(name[0]) if name[0] in order else len(order), name)


def family_of(name: str) -> str:
    """What an experiment is about.

    >>> family_of("q1"), family_of("x3")
    ('Ring, extended virtual synchrony, replication (Amir)', 'Beyond the papers')
    """
    return next((family for letters, family in _FAMILIES if name[0] in letters), _BEYOND)


def _family(name: str, tallies: Sequence[tuple[int, int]], columns: int) -> Markup:
    """A line above its experiments: how much of it agrees."""
    agree, judged = (sum(tally[at] for tally in tallies) for at in (0, 1))
    says = [" · ", tag("span", f"{agree} of {judged} agree", class_="soft")] if judged else []
    return tag("tr", tag("th", name, *says, colspan=columns), class_="family")


def _glance(each: Experiment) -> list[Content]:
    spec = each.results.spec
    findings = each.findings
    told = [_off(number) for number in findings.off]
    told += [f"{claim.says}: {claim.values}" for claim in findings.broken]
    return [
        spec.title,
        _tally(findings.tally),
        _what_differs(told, findings.differs),
        tag("span", spec.paper.source if spec.paper else "-", class_="soft"),
        tag("span", each.results.state, class_="good" if each.results.complete else "warn"),
    ]


def _trace_glance(each: Traces) -> list[Content]:
    numbers = likeness(each.spec, each.found)
    streams = sum(len(folder.streams) for folder in each.found)
    caveats = [caveat for some in each.spec.sets if some.beside_paper for caveat in some.caveats]
    return [
        each.spec.title,
        _tally(_trace_tally(each)),
        _what_differs([_off(number) for number in numbers if number.agrees is False], caveats),
        tag("span", each.spec.paper.source, class_="soft"),
        tag("span", f"{streams} recordings", class_="good"),
    ]


def _trace_tally(each: Traces) -> tuple[int, int]:
    verdicts = [number.agrees for number in likeness(each.spec, each.found) if number.agrees is not None]
    return sum(verdicts), len(verdicts)


def _live_glance(each: Live) -> list[Content]:
    return [
        each.spec.title,
        _tally(each.tally),
        _what_differs(off(each.missed), each.spec.differs if each.missed else ()),
        tag("span", each.spec.source, class_="soft"),
        tag("span", "live", class_="good"),
    ]


def _off(number: Number) -> str:
    return f"{number.what}: {shown(number.paper)}, ours {shown(number.ours or 0)}"


def _summary(experiments: Sequence[Experiment]) -> Markup:
    complete = sum(each.results.complete for each in experiments)
    tallies = [each.findings.tally for each in experiments]
    agree, judged = (sum(tally[at] for tally in tallies) for at in (0, 1))
    return tag(
        "p",
        f"{complete} of {len(experiments)} simulated experiments have all their results. Of {judged} numbers"
        " and claims of the papers that they say something about, ",
        tag("b", f"{agree} agree"),
        f" and {judged - agree} do not.",
    )


def _what_differs(off: Sequence[str], reasons: Sequence[str]) -> Content:
    """At a glance: numbers and claims that do not agree, and the first reason that is known."""
    told = [*off[:_SHOWN], *([f"and {len(off) - _SHOWN} more"] if len(off) > _SHOWN else [])]
    parts: list[Content] = []
    if told:
        parts.append(tag("span", "; ".join(told), class_="warn"))
    if reasons:
        parts.append(tag("span", ". " if told else "", prose(beginning(reasons[0])), class_="soft"))
    elif told:
        parts.append(tag("span", ". No reason is known.", class_="soft"))
    return joined(parts) if parts else tag("span", "nothing differs", class_="good")


def beginning(text: str) -> str:
    """Its first sentence, and the next, if that says little; the section has all of it.

    >>> beginning("No paper. It took 0.5 s. Guess: a timer")
    'No paper. It took 0.5 s.'
    >>> beginning("Our buffer starts empty, and the paper's does not. So it purges less.")
    "Our buffer starts empty, and the paper's does not."
    """
    first, *rest = re.split(r"(?<=\.) (?=[A-Z])", text)
    return f"{first} {rest[0]}" if rest and len(first) < _SHORT else first


def _tally(tally: tuple[int, int]) -> Content:
    agree, total = tally
    if not total:
        return "-"
    return tag("span", f"{agree} of {total}", class_="good" if agree == total else "warn")


def _missing(experiments: Sequence[Experiment], live: Sequence[Live]) -> Markup:
    items = [
        joined([f"{each.name} ({each.results.state}): ", tag("code", each.command), _takes(each)])
        for each in experiments
        if not each.results.complete
    ]
    items += [
        joined([f"{each.name} (not measured): ", tag("code", command(each))])
        for each in live
        if not each.rows
    ]
    if not items:
        return Markup("")
    return tag("div", tag("b", "Without all results:"), listed(items), class_="absent", id="missing")


def _takes(each: Experiment) -> str:
    time = each.results.spec.time
    return f" (all of it: {time})" if time else ""


def _contents(named: Sequence[tuple[str, str]]) -> Markup:
    """Links to the sections, by family, as the first table has them."""
    found: list[Content] = []
    for family, parts in groupby(named, key=lambda part: family_of(part[0])):
        links = [tag("a", f"{name}: {title}", href=f"#{name}") for name, title in parts]
        found.append(joined([tag("span", family, class_="soft"), listed(links)]))
    found.append(tag("a", _LAYERS, href="#layers"))
    return tag("nav", tag("b", "Contents"), listed(found))


def _section(anchor: str, title: str, content: Markup, *, label: str = "") -> Markup:
    heading = [tag("span", label, class_="id")] if label else []
    return tag("section", tag("h2", *heading, title), content, id=anchor)


def _experiment(each: Experiment) -> Markup:
    results, findings = each.results, each.findings
    spec = results.spec
    parts: list[Content] = []
    if spec.paper is not None:
        says = f": {spec.paper.says}." if spec.paper.says else "."
        parts.append(tag("p", tag("b", spec.paper.source), says))
    if not results.complete:
        parts.append(_absent(each))
    if not results.rows:
        return joined(parts)  # there is nothing to say of the paper's numbers
    if findings.numbers:
        parts.append(
            table(
                ["the paper's numbers", "paper", "ours", "difference", ""],
                map(_number, findings.numbers),
                stacked=True,
            )
        )
    if findings.claims:
        whose = "the paper's claims" if spec.paper else "what was expected"
        parts.append(table([whose, "ours", ""], map(_claim, findings.claims), stacked=True))
    if findings.differs:
        differs = findings.off or findings.broken
        title = "What differs, and why" if differs else "Remarks"
        parts += [tag("p", tag("b", title)), listed(map(prose, findings.differs))]
    if spec.report is not None:
        numbers = spec.paper.numbers if spec.paper else ()
        parts += [draw(plot, results.rows, numbers) for plot in spec.report.plots]
    parts.append(_data(results.rows, shown_at_once=spec.report is not None and not spec.report.plots))
    return joined(parts)


def _absent(each: Experiment) -> Markup:
    how = joined([f"{each.results.state}. ", tag("code", each.command)])
    reasons = [listed(dict.fromkeys(each.results.failures[:_FAILURES]))] if each.results.failures else []
    return tag("div", how, *reasons, class_="absent")


def _number(number: Number) -> list[Content]:
    ours = "-" if number.ours is None else shown(number.ours)
    gap = number.difference
    difference = "-" if gap is None else signed(gap)
    return [number.what, shown(number.paper), ours, difference, _verdict(number.agrees, "agrees", "differs")]


def _claim(claim: Claim) -> list[Content]:
    return [claim.says, claim.values, _verdict(claim.holds, "holds", "does not hold")]


def _verdict(verdict: bool | None, good: str, bad: str) -> Markup:
    if verdict is None:
        return tag("span", "no result", class_="warn")
    return tag("span", good if verdict else bad, class_="good" if verdict else "bad")


def _data(rows: Sequence[Row], *, shown_at_once: bool) -> Markup:
    """Every figure, for those who want to look, or where nothing else is to be seen."""
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in _INTERNAL]
    constant = [name for name in names if len({row.get(name) for row in rows}) == 1] if len(rows) > 1 else []
    varying = sorted(
        (name for name in names if name not in constant), key=lambda name: not _words(rows, name)
    )
    same = ", ".join(f"{name} = {_cell(rows[0].get(name))}" for name in constant)
    return tag(
        "details",
        tag("summary", f"All {len(rows)} rows"),
        *([tag("p", f"In every row: {same}.", class_="note")] if same else []),
        table(
            varying,
            ([_cell(row.get(name)) for name in varying] for row in rows),
            words=sum(_words(rows, name) for name in varying),
        ),
        **({"open": "open"} if shown_at_once else {}),
    )


def _words(rows: Sequence[Row], name: str) -> bool:
    """Whether a column holds words, not numbers: these come first."""
    return any(isinstance(row.get(name), str) for row in rows)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return shown(value) if isinstance(value, int | float) else str(value)


def _layers(experiments: Sequence[Experiment]) -> Markup:
    words = tag(
        "p",
        LAYERS,
    )
    return joined([words, layers_section([each.results for each in experiments])])


def _traces(each: Traces) -> Markup:
    if each.absent:
        says = tag("p", tag("b", each.spec.paper.source), f": {each.spec.paper.says}.")
        return joined([says, tag("p", each.absent, class_="absent")])
    return traces_section(each.spec, each.found)
