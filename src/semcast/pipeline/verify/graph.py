"""Small graphs in arrays: who replaces whom among the messages that an executor holds at once."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]


class Replacements:
    """Edges from a message (`new`) to one that it replaces (`old`), by node: 0, 1, 2, ..."""

    def __init__(self, old: _Ints, new: _Ints) -> None:
        self._nodes, places = np.unique(np.concatenate((old, new)), return_inverse=True)
        self.size = len(self._nodes)
        self.old, self.new = places[: len(old)], places[len(old) :]
        by_new = np.argsort(self.new, kind="stable")
        self._olds = self.old[by_new]
        self._start = np.searchsorted(self.new[by_new], np.arange(self.size + 1))

    def replaced(self, news: _Ints) -> _Ints:
        """What these replace, once for each edge."""
        counts = self._start[news + 1] - self._start[news]
        before = np.repeat(np.cumsum(counts) - counts, counts)
        places: _Ints = np.repeat(self._start[news], counts) + np.arange(counts.sum()) - before
        olds: _Ints = self._olds[places]
        return olds

    def reached(self, seeds: _Ints) -> _Flags:
        """The seeds and everything that they replace, directly or through others."""
        reached = np.zeros(self.size, dtype=np.bool_)
        front = np.unique(seeds)
        while len(front):
            reached[front] = True
            olds = self.replaced(front)
            front = np.unique(olds[~reached[olds]])
        return reached

    def reached_nodes(self, seeds: _Ints, asked: _Ints) -> _Flags:
        """Which of the nodes that are asked for are reached from seeds; both need not be in any edge."""
        reached = self.reached(self._places(seeds[np.isin(seeds, self._nodes)]))
        known: _Flags = np.isin(asked, self._nodes)
        known[known] = reached[self._places(asked[known])]
        return known

    def _places(self, nodes: _Ints) -> _Ints:
        places: _Ints = np.searchsorted(self._nodes, nodes)
        return places

    def endless(self) -> _Flags:
        """Those whose chain of replacements never ends."""
        waiting = np.bincount(self.old, minlength=self.size)
        front = np.flatnonzero(waiting == 0)
        while len(front):
            olds, times = np.unique(self.replaced(front), return_counts=True)
            waiting[olds] -= times
            front = olds[waiting[olds] == 0]
        result: _Flags = waiting > 0
        return result


def covered_rows(table: pa.Table) -> pa.Table:
    """Of edges (..., old, new, covered) of one process those whose old message turns out to be covered."""
    edges = Replacements(table.column("old").to_numpy(), table.column("new").to_numpy())
    reached = edges.reached(edges.new[table.column("covered").to_numpy()])
    return _first_rows(table, edges.old, reached)


def endless_rows(table: pa.Table) -> pa.Table:
    """Of edges (..., old, new) of one run those whose old message has no last replacement."""
    edges = Replacements(table.column("old").to_numpy(), table.column("new").to_numpy())
    return _first_rows(table, edges.old, edges.endless())


def _first_rows(table: pa.Table, old: _Ints, chosen: _Flags) -> pa.Table:
    """The first row of each chosen node, without the last columns, which are about edges."""
    nodes, rows = np.unique(old, return_index=True)
    columns = table.column_names[: table.column_names.index("old")]
    return table.select(columns).take(np.sort(rows[chosen[nodes]]))
