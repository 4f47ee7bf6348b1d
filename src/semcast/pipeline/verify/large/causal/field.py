"""Where strips lie, and how they are worked on: by Spark, in any number of tasks."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from semcast.pipeline.verify.large.causal.again import again
from semcast.pipeline.verify.large.causal.arrays import Ints
from semcast.pipeline.verify.large.causal.course import Course, course_of
from semcast.pipeline.verify.large.causal.ground import Ground, ground_of
from semcast.pipeline.verify.large.causal.meeting import VECTORS, met, words_of
from semcast.pipeline.verify.large.causal.rumours import RUMOUR
from semcast.pipeline.verify.large.causal.strips import Strip, strips_of
from semcast.pipeline.verify.scene import Scene

Work = Callable[[int, Strip], Ints]
"""From a strip and its number to a column for each result."""

_Batches = Iterator[pa.RecordBatch]


class Field(Protocol):
    """Strips, and what follows what."""

    ground: Ground
    course: Course

    def along(self, paths: Collection[int], work: Work, names: Sequence[str], most: int) -> Ints:
        """What comes of the strips of some paths, in any order; of more than `most` results one more."""

    def meet(self, paths: Collection[int]) -> dict[int, int]:
        """Compare what is delivered with what its senders had: by path, how many rumours there are."""

    def met(self, paths: Collection[int]) -> Ints:
        """These rumours (path, seat, index, value)."""


class SparkField:
    """Strips in a table."""

    ground: Ground
    course: Course

    def __init__(self, scene: Scene, runs: Collection[str]) -> None:
        self._scene = scene
        self.ground = ground_of(scene, runs)
        self._strips = scene.keep(strips_of(scene, self.ground, again(scene)))
        self.course = course_of(
            self.ground, self._strips.select("stay", "chunk", "sent", "highest").toArrow()
        )
        self._met: DataFrame | None = None

    def along(self, paths: Collection[int], work: Work, names: Sequence[str], most: int) -> Ints:
        """What comes of the strips of some paths, in any order; of more than `most` results one more."""
        schema = ", ".join(f"{name} long" for name in names)
        work_on = _working(self.course.number, work, list(names))
        return _numbers(self._of(paths).mapInArrow(work_on, schema).limit(most + 1))

    def meet(self, paths: Collection[int]) -> dict[int, int]:
        """Compare what is delivered with what its senders had: by path, how many rumours there are."""
        schema = ", ".join(f"{name} long" for name in RUMOUR)
        words = self._of(paths).mapInArrow(
            _telling(self.ground, self.course), "strip long, path long, many long, vectors binary"
        )
        self._met = self._scene.keep(words.groupBy("strip").applyInArrow(_compare, schema))
        return {row["path"]: row["count"] for row in self._met.groupBy("path").count().collect()}

    def met(self, paths: Collection[int]) -> Ints:
        """These rumours (path, seat, index, value)."""
        assert self._met is not None
        table = self._scene.table(((path,) for path in sorted(paths)), "path")
        return _numbers(self._met.join(fn.broadcast(table), "path", "left_semi").select(*RUMOUR))

    def _of(self, paths: Collection[int]) -> DataFrame:
        """The strips of some paths: (stay, chunk, rows)."""
        wanted, path = set(paths), self.course.path
        stays = {stay for (stay, _), number in self.course.number.items() if path[number] in wanted}
        table = self._scene.table(((stay,) for stay in sorted(stays)), "stay")
        return self._strips.join(fn.broadcast(table), "stay", "left_semi").select("stay", "chunk", "rows")


def _numbers(frame: DataFrame) -> Ints:
    return np.stack([column.to_numpy().astype(np.int64) for column in frame.toArrow().columns])


def _strips(batches: _Batches) -> Iterator[tuple[tuple[int, int], Strip]]:
    """With their stays and chunks."""
    for batch in batches:
        for stay, chunk, rows in zip(*batch.columns, strict=True):
            yield (stay.as_py(), chunk.as_py()), Strip.of(rows.as_buffer())


def _working(
    numbers: dict[tuple[int, int], int], work: Work, names: list[str]
) -> Callable[[_Batches], _Batches]:
    def go(batches: _Batches) -> _Batches:
        for key, strip in _strips(batches):
            found = work(numbers[key], strip)
            yield pa.RecordBatch.from_arrays([pa.array(column) for column in found], names=names)

    return go


def _telling(ground: Ground, course: Course) -> Callable[[_Batches], _Batches]:
    def tell(batches: _Batches) -> _Batches:
        for key, strip in _strips(batches):
            for about, path, vectors in words_of(ground, course, course.number[key], strip):
                row = ([about], [path], [vectors.shape[1]], [vectors.tobytes()])
                columns = [pa.array(value, field.type) for value, field in zip(row, VECTORS, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=VECTORS)

    return tell


def _compare(words: pa.Table) -> pa.Table:
    columns = (words[name].to_pylist() for name in ("path", "many", "vectors"))
    found = met(
        [
            (path, np.frombuffer(vectors, np.int64).reshape(-1, many))
            for path, many, vectors in zip(*columns, strict=True)
        ]
    )
    return pa.Table.from_arrays([pa.array(column) for column in found], names=list(RUMOUR))
