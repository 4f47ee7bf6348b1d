"""A work queue without a broker: each job goes to one worker, and to the next one if that dies.

`to="one"` chooses a member from the place of the job in the order: the same for all, so nobody has to ask.
The member that hands out the jobs answers no calls, so none comes to it.
"""

import asyncio

import semcast

JOBS = 30


async def main() -> None:
    """Three workers, of which one leaves in the middle of its second job."""
    async with semcast.join("example-work", name="desk") as desk:
        workers = [await semcast.join("example-work", name=name) for name in ("ann", "bob", "cy")]
        done: dict[str, int] = {}

        def work(worker: semcast.Group) -> None:
            @worker.on_call
            async def job(request: semcast.CallRequest) -> bytes:
                name = worker.member.name
                if name == "bob" and done.get(name):
                    asyncio.get_running_loop().call_soon(
                        lambda: leaving.append(asyncio.create_task(worker.close()))
                    )
                    await asyncio.sleep(60)  # it never comes to that
                await asyncio.sleep(0.001)
                done[name] = done.get(name, 0) + 1
                again = f", which {request.former[0].name} had begun" if request.former else ""
                return f"{name} did job {request.payload.decode()}{again}".encode()

        leaving: list[asyncio.Task[None]] = []
        for worker in workers:
            work(worker)
        await desk.wait_for(4, timeout=20)
        jobs = (desk.call(b"%d" % number, to="one", timeout=30) for number in range(JOBS))
        answers = await asyncio.gather(*jobs)
        assert all(answer.complete for answer in answers)
        taken_over = [answer.result.decode() for answer in answers if answer.departed]
        print(f"{sum(done.values())} jobs done by {', '.join(sorted(done))}; {len(taken_over)} taken over")
        assert sum(done.values()) == JOBS
        assert taken_over
        await asyncio.gather(*leaving, *(worker.close() for worker in workers))


if __name__ == "__main__":
    asyncio.run(main())
