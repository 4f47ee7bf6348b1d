"""Where the taxis are, with dispatchers that lose each other (Amir 1995, section 7.4: timestamped updates).

Only the newest report of a taxi matters, so the order in which reports come does not: each is answered at
once, on every side of a partition, and in the end all dispatchers know the same.
"""

import asyncio
import tempfile
from secrets import token_hex

import semcast
from semcast.engine.database import SqlReceipt
from semcast.engine.levels import ReadLevel
from semcast.engine.results import SqlResult

NAMES = ("east", "north", "west")


async def streets(db: semcast.Database, level: ReadLevel) -> dict[object, object]:
    """Where each taxi is, as a dispatcher knows it."""
    found = await db.query("select id, street from taxi order by id", level=level)
    return {row[0]: row[1] for row in found.rows}


async def ordered(report: SqlResult | SqlReceipt) -> None:
    """Wait until a report has its place: from then on a linear query sees it at every dispatcher."""
    assert isinstance(report, SqlReceipt)
    await report.ordered()


async def main() -> None:
    """Three dispatchers, two of which are away for a while."""
    name = f"taxis-{token_hex(4)}"
    with tempfile.TemporaryDirectory() as folder:

        def dispatcher(which: str) -> semcast.Database:
            return semcast.database(name, name=which, founders=NAMES, data=f"{folder}/{which}")

        east, north, west = await asyncio.gather(*(dispatcher(each) for each in NAMES))
        await east.execute("create table taxi(id integer primary key, street text, at integer)")
        await ordered(await east.put("taxi", {"id": 1}, {"street": "High St"}, at=100))
        await ordered(await north.put("taxi", {"id": 2}, {"street": "Mill Rd"}, at=101))

        await north.close()
        await east.close()
        while west.status().primary:
            await asyncio.sleep(0.05)
        await west.put("taxi", {"id": 1}, {"street": "Low St"}, at=205)
        await west.put("taxi", {"id": 1}, {"street": "Bridge St"}, at=203)  # came late
        print("west, alone, knows", await streets(west, "dirty"))

        east, north = await asyncio.gather(dispatcher("east"), dispatcher("north"))
        await ordered(await north.put("taxi", {"id": 2}, {"street": "Station Sq"}, at=300))
        known = [await streets(each, "linear") for each in (east, north, west)]
        print("together they know", known[0])
        assert known == [{1: "Low St", 2: "Station Sq"}] * 3
        await asyncio.gather(east.close(), north.close(), west.close())


asyncio.run(main())
