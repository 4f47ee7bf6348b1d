"""The page itself, in a browser: the partition of a simulated group is seen to split and to merge."""

import asyncio
import urllib.request
from pathlib import Path

import pytest
from tests.daemon.browser import Browser

import semcast
from semcast.dashboard.application import application
from semcast.dashboard.feed import Feed
from semcast.dashboard.picture import Picture
from semcast.dashboard.playing import Film
from semcast.server.serving import HttpServer, ServerAddress
from semcast.testing import World

VIEWS = "JSON.stringify([...document.querySelectorAll('g.view')].map(each => each.dataset.members).sort())"


@pytest.fixture(scope="module")
def film() -> Film:
    """Three members, cut into two sides after ten seconds, healed after twenty."""

    async def member(name: str) -> None:
        async with semcast.join("prices", name=name) as group:

            async def speak() -> None:
                while True:
                    await group.send(b"secret payload", item="x")
                    await asyncio.sleep(0.1)

            speaking = asyncio.create_task(speak())
            async for _ in group:
                pass
            speaking.cancel()

    with World(seed=1) as world:
        for host in world.hosts:
            world.start(host, member, host)
        world.sleep(10)
        world.partition({"a"}, {"b", "c"})
        world.sleep(10)
        world.heal()
        world.sleep(10)
        return Film(world.histories()[0])


def test_a_partition_is_seen_on_the_page(film: Film, tmp_path: Path) -> None:
    frames = list(film.frames(film.begin, film.end))

    async def scenario() -> None:
        feed, picture = Feed({"replay": "a world", "speed": 1}), Picture(film.group)

        def show(seconds: float) -> None:
            at = int(seconds * 2)
            picture.update(1000.0 + seconds, frames[at])
            feed.show(picture)

        async with HttpServer(application(feed), ServerAddress(listen="127.0.0.1:0")) as server:
            loop = asyncio.get_running_loop()
            show(9)
            page = f"http://{server.address}/"
            await asyncio.to_thread(_look, page, tmp_path, lambda at: loop.call_soon_threadsafe(show, at))
            feed.close()

    asyncio.run(scenario())


def _look(page: str, folder: Path, show: object) -> None:
    assert callable(show)
    browser = Browser(page, folder)
    try:
        browser.wait_for(VIEWS, '["a b c"]')
        assert browser.value("document.getElementById('verdict').textContent") == "all 3 in one view"
        show(15)
        browser.wait_for(VIEWS, '["a","b c"]')
        assert "2 views" in browser.value("document.title + document.getElementById('verdict').textContent")
        assert "partitioned" in browser.value("document.getElementById('changes').textContent")
        assert browser.value("document.querySelector('[data-tile=views] b').textContent") == "2"
        show(28)
        browser.wait_for(VIEWS, '["a b c"]')
        assert "merges 2 views" in browser.value("document.getElementById('changes').textContent")
        assert browser.value("document.querySelectorAll('#rows tr').length") == 3
        assert browser.value("document.querySelectorAll('#charts canvas').length") == 6
        assert "secret" not in browser.value("document.documentElement.outerHTML")
        wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        browser._call(
            "Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True
        )
        assert browser.value(wide), "on a phone nothing has to be moved sideways"
    finally:
        browser.close()


def test_the_page_is_self_contained_and_offers_nothing_to_change(film: Film) -> None:
    async def scenario() -> tuple[str, str, int]:
        feed, picture = Feed({"replay": ""}), Picture(film.group)
        picture.update(1.0, next(film.frames(film.begin, film.end)))
        feed.show(picture)
        async with HttpServer(application(feed), ServerAddress(listen="127.0.0.1:0")) as server:

            def get(path: str, method: str = "GET") -> tuple[str, int]:
                request = urllib.request.Request(f"http://{server.address}{path}", method=method)
                try:
                    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
                        assert "default-src 'none'" in answer.headers["content-security-policy"]
                        return answer.read().decode(), answer.status
                except urllib.error.HTTPError as error:
                    return "", error.code

            page, state = await asyncio.to_thread(get, "/"), await asyncio.to_thread(get, "/state")
            posted = await asyncio.to_thread(get, "/state", "POST")
            feed.close()
            return page[0], state[0], posted[1]

    page, state, posted = asyncio.run(scenario())
    assert posted == 405
    assert '"group":"prices"' in state
    assert "https://" not in page
    assert page.count("http://") == 1, "the name of SVG's own elements"
