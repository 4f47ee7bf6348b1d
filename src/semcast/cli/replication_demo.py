"""`semcast demo replication`: a replicated database through a partition, in real processes."""

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console

from semcast.chaos.judge import judge
from semcast.chaos.network import Lan, NoNamespacesError
from semcast.demo.partition import CutNetwork, NetworkCut, StoppedProcesses
from semcast.demo.replication import ReplicationStory, Step
from semcast.demo.servers import NAMES
from semcast.demo.supervisor import DemoError
from semcast.history import require_pyarrow
from semcast.specs import Status


def run(args: argparse.Namespace) -> int:
    """Run it; 0 only if everything held."""
    require_pyarrow()
    console = Console(stderr=args.json, highlight=False, soft_wrap=True)
    with ExitStack() as stack:
        partition = _partition(stack)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="semcast-demo-")))
        try:
            result = asyncio.run(_demo(console, partition, folder))
        except (DemoError, TimeoutError) as error:
            console.print(f"demo: {error or 'a server did not answer in time'}", style="red", markup=False)
            return 1
    if args.json:
        print(json.dumps(result, indent=2))
    return 0 if result["held"] else 1


def _partition(stack: ExitStack) -> NetworkCut:
    """Namespaces where they are to be had."""
    try:
        return CutNetwork(stack.enter_context(Lan(NAMES)))
    except NoNamespacesError as error:
        return StoppedProcesses(str(error))


async def _demo(console: Console, partition: NetworkCut, folder: Path) -> dict[str, Any]:
    console.print(
        "Three servers, a, b and c, keep a database: an account with 100, a taxi, and bolts in stock.\n"
        f"Then a and b lose c: {partition.how}.\n",
        markup=False,
    )
    console.print(f"{'server':10} {'level':12} {'asked':26} answered")
    steps: list[Step] = []

    def tell(step: Step) -> None:
        if steps and steps[-1].side[0] in "ab" and step.side[0] == "c":
            console.print()
        steps.append(step)
        console.print(f"{step.side:10} {step.level:12} {step.asked:26} {step.answer}", markup=False)

    story = ReplicationStory(partition, folder, tell)
    result = await story.run()
    judged = judge(story.journals, rest=story.rest)
    result["verdicts"] = {each.property: each.status for each in judged.findings}
    result["held"] = result["held"] and not judged.having(Status.VIOLATED)
    balance, street, bolts = (rows[0][0] for rows in result["tables"])
    console.print(
        f"\nHealed. After {result['seconds']:.1f} s all three have the same tables (digest"
        f" {result['digest'][:12]}):\n"
        f"the balance is {balance} (100 - 30 + 1 + 50 + 5, and 10 %: what waited was done, once; not what\n"
        f"was asked for only if it was 100, for it was not any more), taxi 7 is in {street} (the later of\n"
        f"two reports), and there are {bolts} bolts (8 - 3).",
        markup=False,
    )
    counts = Counter(result["verdicts"].values())
    told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    console.print(f"All three were recorded, and their promises judged (see semcast check): {told}.")
    return {
        "partition": partition.how,
        "steps": [{"side": s.side, "level": s.level, "asked": s.asked, "answer": s.answer} for s in steps],
        **result,
    }
