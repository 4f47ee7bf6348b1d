"""`semcast demo logger`: publish/subscribe that keeps everything, in real processes."""

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console

from semcast.chaos.judge import judge
from semcast.demo.log_story import LogStory
from semcast.demo.supervisor import DemoError
from semcast.history import require_pyarrow
from semcast.specs import Status


def run(args: argparse.Namespace) -> int:
    """Run it; 0 only if everything held."""
    require_pyarrow()
    console = Console(stderr=args.json, highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="semcast-demo-") as folder:
        try:
            result = asyncio.run(_demo(console, Path(folder), args.seconds))
        except (DemoError, TimeoutError) as error:
            console.print(f"demo: {error or 'a process did not end in time'}", style="red", markup=False)
            return 1
    if args.json:
        print(json.dumps(result, indent=2))
    return 0 if result["held"] else 1


async def _demo(console: Console, folder: Path, seconds: float) -> dict[str, Any]:
    story = LogStory(folder, lambda text: console.print(f"  {text}", markup=False), min(seconds, 3.0))
    result = await story.run()
    judged = judge(story.journals, rest=story.rest)
    result["verdicts"] = {each.property: each.status for each in judged.findings}
    broken = judged.having(Status.VIOLATED)
    result["held"] = not broken
    console.print(
        f"\n{result['sent']} messages were sent: prices of {result['items']} items, and {result['trades']}"
        f" trades.\ndesk, which was killed, read {result['desk']} in its two lives, phone {result['phone']};"
        f" late read {result['late']}, and has\nthe same prices and trades as they have. Of the trades,"
        f" {result['desk again']} came to desk again: it was killed before\nit had acknowledged them.",
        markup=False,
    )
    counts = Counter(result["verdicts"].values())
    told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    console.print(f"All were recorded, and their promises judged (see semcast check): {told}.")
    for each in broken:
        console.print(f"{each.property}: {each.why}", style="red", markup=False)
    return result
