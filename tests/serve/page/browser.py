"""A server and a headless Chromium for tests of the page."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from contextlib import contextmanager

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def serving(app):
    """The address of an app that listens on a free port until the end."""
    import uvicorn

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)


class Visits(dict):
    """A tab for each address, which tests use one after the other."""

    def __init__(self, browser):
        super().__init__()
        self.browser = browser

    def __missing__(self, address):
        self[address] = Visit(self.browser, address)
        return self[address]


class Visit:
    """A tab that remembers what went wrong in it and whom it asked."""

    def __init__(self, browser, address, **settings):
        self.address = address
        self.tab = browser.new_page(**{"viewport": {"width": 1200, "height": 900}, **settings})
        self.tab.set_default_timeout(15_000)
        self.said, self.asked = [], []
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.tab.on("request", lambda request: self.asked.append(request.url))

    def clean(self):
        """Whether nothing went wrong, and nobody else was asked, since the last time."""
        said, asked = self.said[:], self.asked[:]
        self.said.clear()
        self.asked.clear()
        return not said and all(url.startswith((self.address, "about:", "data:")) for url in asked)

    def open(self, route=""):
        """Go to a view and wait until all that it asks for has come."""
        self.tab.goto("about:blank")
        self.tab.goto(f"{self.address}/#/{route}")
        self.tab.wait_for_selector("main[data-view] h1")
        return self.settled()

    def settled(self):
        """Wait until no section is being loaded."""
        waiting = "[...document.querySelectorAll('main .quiet')].some(e => e.textContent.startsWith('Loading'))"
        return self.until(f"!{waiting}")

    def until(self, condition):
        """Wait for a condition in JavaScript; Playwright's own way needs eval, which the page forbids."""
        for _ in range(300):
            if self.tab.evaluate(condition):
                return self.tab
            self.tab.wait_for_timeout(50)
        raise AssertionError(f"{condition} does not come true")
