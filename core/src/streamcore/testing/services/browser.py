"""A real browser without a window, fetched by package name and driven by its own protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import IO, Any, Self, cast

from .downloads import Package, node, npm
from .process import HOST, Process, Service, ServiceError, Workspace, free_port

_VERSION = "153.0.0"
_UNPACK = """
const [from, to] = process.argv.slice(1), fs = require("node:fs"), zlib = require("node:zlib");
for (const name of ["chromium", "al2023.tar", "fonts.tar"]) {
  const packed = fs.readFileSync(`${from}/${name}.br`);
  fs.writeFileSync(`${to}/${name}`, zlib.brotliDecompressSync(packed));
}
"""
_BRIDGE = """
const socket = new WebSocket(process.argv[1]);
socket.onopen = () => require("node:readline").createInterface({input: process.stdin})
  .on("line", (line) => socket.send(line));
socket.onmessage = (message) => process.stdout.write(message.data + "\\n");
socket.onclose = socket.onerror = () => process.exit();
"""
_FONTS = """<?xml version="1.0"?>
<fontconfig><dir>{fonts}</dir><dir>/usr/share/fonts</dir><cachedir>{cache}</cachedir></fontconfig>
"""
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # it only ever opens pages of our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def _fill(target: Path, scratch: Path) -> None:
    npm("@sparticuz/chromium", _VERSION).fill(target, scratch)
    packed = target / "node_modules" / "@sparticuz" / "chromium" / "bin"
    command = [str(node()), "-e", _UNPACK, str(packed), str(target)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    for name in ("al2023.tar", "fonts.tar"):
        with tarfile.open(target / name) as content:
            content.extractall(target, filter="data")
        (target / name).unlink()
    (target / "chromium").chmod(0o755)
    shutil.rmtree(target / "node_modules")


CHROMIUM = Package(f"chromium-{_VERSION}", _fill, megabytes=70)


class Browser(Service):
    """Headless Chromium with one page, on loopback."""

    def __init__(self) -> None:
        self._workspace: Workspace | None = None
        self._process: Process | None = None
        self._bridge: subprocess.Popen[str] | None = None
        self._calls = 0
        self.events: list[dict[str, Any]] = []
        """What the page has told unasked: errors and messages of its console."""

    def start(self) -> Self:
        self._workspace = Workspace("browser")
        program, environment = _program(self._workspace.path)
        port = free_port()
        folder = self._workspace.path
        flags = [f"--user-data-dir={folder / 'profile'}", f"--remote-debugging-port={port}"]
        self._process = Process(
            "the browser",
            [program, *_FLAGS, *flags, "about:blank"],
            folder / "browser.log",
            cwd=folder,
            env=environment,
        )
        self._process.wait_until(lambda: bool(_pages(port)))
        address = _pages(port)[0]["webSocketDebuggerUrl"]
        self._bridge = subprocess.Popen(
            [str(node()), "-e", _BRIDGE, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def stop(self) -> None:
        if self._bridge is not None:
            self._bridge.kill()
            self._bridge.communicate()
        if self._process is not None:
            self._process.kill()
        if self._workspace is not None:
            self._workspace.remove()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol."""
        assert self._bridge is not None
        self._calls += 1
        line = json.dumps({"id": self._calls, "method": method, "params": parameters})
        said, heard = cast(IO[str], self._bridge.stdin), cast(IO[str], self._bridge.stdout)
        said.write(line + "\n")
        said.flush()
        for told in heard:
            answer = json.loads(told)
            if answer.get("id") == self._calls:
                if "error" in answer:
                    raise ServiceError(f"the browser: {method}: {answer['error']['message']}")
                return dict(answer["result"])
            self.events.append(answer)
        raise ServiceError(f"the browser ended during {method}")

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Be a screen of this size, of somebody who prefers light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        self.events.clear()
        self.call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        found = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise ServiceError(f"the page: {found['exceptionDetails']}")
        return found["result"].get("value")

    def errors(self) -> list[str]:
        """What went wrong in the page since it was opened."""
        wrong = [each for each in self.events if each["method"] == "Runtime.exceptionThrown"]
        logged = [each["params"]["entry"] for each in self.events if "entry" in each["params"]]
        return [json.dumps(each) for each in wrong] + [
            entry["text"] for entry in logged if entry["level"] == "error"
        ]

    def screenshot(self) -> bytes:
        """The whole page as a PNG."""
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(taken["data"])


def _program(folder: Path) -> tuple[str, dict[str, str]]:
    """The browser and what it needs around it: ours on Linux, else one that is installed."""
    if sys.platform == "linux" and os.uname().machine == "x86_64":
        home, fonts = CHROMIUM.path(), folder / "fonts.conf"
        fonts.write_text(_FONTS.format(fonts=home / "fonts", cache=folder / "fonts"))
        paths = {"LD_LIBRARY_PATH": str(home / "lib"), "FONTCONFIG_FILE": str(fonts)}
        return str(home / "chromium"), paths
    for name in ("chromium", "google-chrome", "chromium-browser"):
        if found := shutil.which(name):
            return found, {}
    raise ServiceError("a browser is needed: install Chromium or Chrome")


def _pages(port: int) -> list[dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/json/list", timeout=5) as answer:
            return [each for each in json.load(answer) if each["type"] == "page"]
    except OSError:
        return []
