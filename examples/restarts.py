"""A program that keeps its state through `kill -9`: its fellows have it, and it comes back under its name.

Three processes keep a ledger (`PrimaryBackup` on agreed views). Each in turn is killed while the ledger
grows, and started again with the very same command: it joins the others, is given the state, and goes on.
"""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from secrets import token_hex

import semcast
from semcast.patterns import BackupReply, Executed, PrimaryBackup


def enter(state: Mapping[str, bytes], request: bytes) -> Executed:
    """Executed at the primary: the sum of all entries."""
    total = b"%d" % (int(state.get("total", b"0")) + int(request))
    return Executed({"total": total}, total)


async def member(group: str, name: str) -> None:
    """One of the three: enters what it reads, a number a line, and says what the total is then."""
    async with semcast.live(
        group, lambda me: PrimaryBackup(me, enter), name=name, minimum=2, uniform=True
    ) as ledger:
        total = ledger.pattern.state.get("total", b"0")
        print(f"begins with {total.decode()}", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            answer = await ledger.answer(ledger.pattern.request(line.strip().encode()))
            assert isinstance(answer, BackupReply)
            print(answer.reply.decode(), flush=True)


async def start(group: str, name: str) -> Process:
    """The same command each time."""
    return await asyncio.create_subprocess_exec(
        sys.executable, __file__, group, name, stdin=PIPE, stdout=PIPE
    )


async def says(process: Process) -> str:
    """Its next line."""
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def enters(process: Process, amount: int) -> int:
    """Have it enter an amount; returns the total."""
    assert process.stdin is not None
    process.stdin.write(f"{amount}\n".encode())
    return int(await says(process))


async def main() -> None:
    """Kill each of three members, one after the other."""
    group = f"example-restarts-{token_hex(4)}"
    members = {name: await start(group, name) for name in "abc"}
    for process in members.values():
        await says(process)
    total = 0
    for victim in "abc":
        total += 1
        assert await enters(members[victim], 1) == total
        members[victim].kill()
        await members[victim].wait()
        other = next(name for name in members if name != victim)
        total += 10
        assert await enters(members[other], 10) == total
        members[victim] = await start(group, victim)
        print(f"{victim} was killed, comes back, and {await says(members[victim])}")
        total += 100
        assert await enters(members[victim], 100) == total
    for process in members.values():
        assert process.stdin is not None
        process.stdin.close()
    assert all([await process.wait() == 0 for process in members.values()])
    print(f"the total is {total}, and nobody has forgotten an entry")


if __name__ == "__main__":
    asyncio.run(member(*sys.argv[1:]) if sys.argv[1:] else main())
