# SPDX-License-Identifier: Apache-2.0
"""The browser of the tests: one that is there, or Debian's chromium, installed by its name.

    python -m tests.browser.install

`MUSTER_BROWSER` names another one, or `none` to do without. Where none can be had the tests of the page are
skipped, and this says so: a package mirror that is down must not fail everything else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
STEPS: Final = (
    ("apt-get", "update", "-qq"),
    ("apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium"),
)
SECONDS: Final = 300.0


def find() -> str | None:
    """The path of a browser, if there is one."""
    asked = os.environ.get("MUSTER_BROWSER")
    names = NAMES if not asked else () if asked == "none" else (asked,)
    return next((path for name in names if (path := shutil.which(name))), None)


def can_install() -> bool:
    """Whether this is a Debian, we may install something, and nobody has asked for another browser."""
    there = shutil.which("apt-get") is not None and Path("/etc/debian_version").exists()
    return there and os.geteuid() == 0 and not os.environ.get("MUSTER_BROWSER")


def install() -> str:
    """Have apt install chromium. The last line of what went wrong; empty if nothing did."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in STEPS:
        try:
            done = subprocess.run(
                step, capture_output=True, text=True, env=environment, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            return str(error)
        if done.returncode:
            return (done.stderr.strip().splitlines() or [f"{step[:2]} ended with {done.returncode}"])[-1]
    return ""


def say(text: str) -> None:
    print(f"muster: {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Whatever comes of it, the tests themselves say whether they can do without."""
    if find() is None and can_install():
        say("installing chromium for the tests of the page (once, about a minute)")
        began = time.monotonic()
        trouble = install()
        say(f"not installed: {trouble}" if trouble else f"installed in {time.monotonic() - began:.0f} s")
    browser = find()
    say(f"the page is tested in {browser}" if browser else "no browser: the tests of the page are skipped")


if __name__ == "__main__":
    main()
