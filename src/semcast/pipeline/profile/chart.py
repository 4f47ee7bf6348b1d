"""A profile as a picture: what a buffer purges, who is written how often, how messages bunch."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from semcast.pipeline.profile.summary import StreamProfile

MOST = 8
"""More lines than that nobody can tell apart: the longest streams are drawn."""


def draw(profiles: Sequence[StreamProfile], path: Path) -> None:
    """Write the chart, as the ending of the path says (PNG, SVG)."""
    shown = sorted(profiles, key=lambda profile: -profile.messages)[:MOST]
    figure = Figure(figsize=(15, 5), layout="constrained")
    purging, frequency, bunching = figure.subplots(1, 3)
    for profile in shown:
        _purging(purging, profile)
        _frequency(frequency, profile)
        _bunching(bunching, profile)
    _label(purging, "What a buffer can purge", "buffer size N (messages)", "$R_N$, share of all messages")
    purging.set_ylim(0, 1)
    _label(frequency, "How often items are written", "items, the most written first", "share of updates")
    frequency.set_yscale("log")
    _label(bunching, "How messages bunch", "messages in a burst", "share of bursts at least as large")
    bunching.set_yscale("log")
    if len(shown) < len(profiles):
        purging.set_title(f"What a buffer can purge\n({len(shown)} longest of {len(profiles)} streams)")
    handles, names = purging.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(4, len(shown)), frameon=False)
    figure.savefig(path, dpi=120)


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_xscale("log")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _purging(axes: Axes, profile: StreamProfile) -> None:
    bins = profile.distances.bins
    totals = accumulate(each.n for each in bins)
    x = [1, *(each.high for each in bins), max(profile.messages, 2)]
    y = [0.0, *(total / profile.messages for total in totals)]
    axes.step(x, [*y, y[-1]], where="post", label=profile.stream)


def _frequency(axes: Axes, profile: StreamProfile) -> None:
    ranked = sorted(profile.items.frequency.items(), reverse=True)
    x, y, rank = [], [], 1
    for updates, keys in ranked:
        x += [rank, rank + keys - 1]
        y += [updates / profile.items.updates] * 2
        rank += keys
    axes.plot(x, y, marker="." if len(x) <= 2 else None, label=profile.stream)


def _bunching(axes: Axes, profile: StreamProfile) -> None:
    sizes = list(profile.bursts.counts.items())
    totals = list(accumulate((n for _, n in reversed(sizes))))[::-1]
    x = [size for size, _ in sizes]
    y = [total / profile.bursts.bursts for total in totals]
    axes.plot(x, y, marker="." if len(x) <= 2 else None, label=profile.stream)
