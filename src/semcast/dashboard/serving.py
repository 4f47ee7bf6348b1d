"""A dashboard beside something else: served for as long as a block lasts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager

from semcast.dashboard.application import application
from semcast.dashboard.feed import Feed
from semcast.dashboard.watching import watch
from semcast.group.observing import observe
from semcast.group.settings import GroupSettings
from semcast.server.serving import HttpServer, ServerAddress


@asynccontextmanager
async def dashboard(
    groups: Sequence[str], settings: GroupSettings, listen: str = "127.0.0.1:0"
) -> AsyncIterator[str]:
    """Serve the page of these groups; gives its address."""
    feed = Feed({"replay": ""})
    with ExitStack() as stack:
        observers = [(group, stack.enter_context(observe(group, settings))) for group in groups]
        async with HttpServer(application(feed), ServerAddress(listen=listen)) as server:
            watching = asyncio.create_task(watch(feed, observers))
            try:
                yield f"http://{server.address}/"
            finally:
                feed.close()
                watching.cancel()
                await asyncio.wait([watching])
