"""A work queue without a broker: each job goes to one worker, and to the next one if that is gone.

`to="one"` chooses a member from the place of the job in the order: the same for all, so nobody has to ask.
The member that hands out the jobs answers no calls, so none comes to it. Each job is answered once. A worker
that is gone before its answer is known may have done the job: then it is done twice.
"""

import asyncio
from collections import Counter

import semcast

JOBS = 30


async def main() -> None:
    """Three workers, of which one leaves in the middle of its second job."""
    async with semcast.join("example-work", name="desk") as desk:
        workers = [await semcast.join("example-work", name=name) for name in ("ann", "bob", "cy")]
        begun: Counter[str] = Counter()
        done: Counter[bytes] = Counter()
        leaving: list[asyncio.Task[None]] = []

        def work(worker: semcast.Group) -> None:
            @worker.on_call
            async def job(request: semcast.CallRequest) -> bytes:
                name = worker.member.name
                begun[name] += 1
                if name == "bob" and begun[name] == 2:
                    leaving.append(asyncio.create_task(worker.close()))
                    await asyncio.sleep(60)  # `close` ends it here
                await asyncio.sleep(0.001)
                done[request.payload] += 1
                return name.encode()

        for worker in workers:
            work(worker)
        await desk.wait_for(4, timeout=20)
        jobs = (desk.call(b"%d" % number, to="one", timeout=30) for number in range(JOBS))
        answers = await asyncio.gather(*jobs)
        taken_over = [answer for answer in answers if answer.departed]
        twice = sum(count > 1 for count in done.values())
        print(
            f"{len(answers)} jobs answered, {len(taken_over)} of them taken over from bob, {twice} done twice"
        )
        assert all(answer.complete for answer in answers)
        assert len(done) == JOBS
        assert 0 < len(taken_over) >= twice
        await asyncio.gather(*leaving, *(worker.close() for worker in workers))


if __name__ == "__main__":
    asyncio.run(main())
