# SPDX-License-Identifier: Apache-2.0
"""What `check-config` says that kube-scheduler would not start with is given to kube-scheduler.

With --write-config-to, kube-scheduler reads and validates its configuration, builds its profiles and
extenders, writes what it understood and exits: no API server is needed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.domain.errors import InputError
from app.explain.config.schema import odd
from app.explain.config.source import find
from app.explain.finding import Weight
from tests.cluster.binaries import bin_dir
from tests.explain.config.looking import SHIPPED, found, shipped

pytestmark = pytest.mark.real

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
    "contexts": [{"name": "none", "context": {"cluster": "none"}}],
    "current-context": "none",
}
SECONDS = 120
Change = Callable[[Any], object]


def start(folder: Path, text: str) -> tuple[bool, str]:
    """Whether kube-scheduler takes the configuration, and what it says."""
    config, kubeconfig, out = folder / "config.yaml", folder / "kubeconfig", folder / "understood.yaml"
    config.write_text(text)
    kubeconfig.write_text(yaml.safe_dump(KUBECONFIG))
    argv = [
        str(bin_dir() / "kube-scheduler"),
        f"--config={config}",
        f"--write-config-to={out}",
        "--secure-port=0",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder)
    assert (done.returncode == 0) == out.exists(), done.stderr
    return done.returncode == 0, done.stderr.replace('\\"', '"')


def written(change: Change) -> str:
    raw = shipped()
    change(raw)
    raw.setdefault("clientConnection", {})["kubeconfig"] = "kubeconfig"
    return yaml.safe_dump(raw, sort_keys=False)


def stanza(at: int, **change: Any) -> Change:
    return lambda raw: raw["extenders"][at].update(change)


def election(**change: Any) -> Change:
    return lambda raw: raw["leaderElection"].update(change)


def top(**change: Any) -> Change:
    return lambda raw: raw.update(change)


TWICE = {"managedResources": [{"name": "nvidia.com/gpu"}, {"name": "nvidia.com/gpu"}]}
REFUSED: dict[str, tuple[Change, str, str]] = {
    "an unknown field": (stanza(1, ignorabel=True), "UnknownField", 'unknown field "extenders[1].ignorabel"'),
    "other letters": (stanza(1, Ignorable=True), "UnknownField", 'unknown field "extenders[1].Ignorable"'),
    "a string for a boolean": (stanza(1, ignorable="false"), "WrongType", "ignorable"),
    "a fraction for an integer": (stanza(0, weight=5.5), "WrongType", "weight"),
    "a number for a duration": (stanza(1, httpTimeout=600), "WrongType", "httpTimeout of type string"),
    "a duration without a unit": (stanza(1, httpTimeout="600"), "WrongType", "missing unit"),
    "a map for a list": (top(profiles={}), "WrongType", "profiles"),
    "bind twice": (stanza(0, bindVerb="bind"), "ValueRefused", "only one extender can implement bind"),
    "weight 0": (stanza(0, weight=0), "ValueRefused", "must have a positive weight"),
    "a resource twice": (stanza(0, **TWICE), "ValueRefused", "duplicate extender managed resource name"),
    "no worker": (top(parallelism=0), "ValueRefused", "should be an integer value greater than zero"),
    "101 percent": (top(percentageOfNodesToScore=101), "ValueRefused", "not in valid range"),
    "no first pause": (top(podInitialBackoffSeconds=0), "ValueRefused", "must be greater than 0"),
    "a pause above the last": (top(podInitialBackoffSeconds=2), "ValueRefused", "PodInitialBackoffSeconds"),
    "a negative burst": (top(clientConnection={"burst": -1}), "ValueRefused", "must be non-negative"),
    "another lock": (election(resourceLock="endpoints"), "ValueRefused", 'value must be "leases"'),
    "a Lease that is too short": (election(leaseDuration="5s"), "ValueRefused", "RenewDeadline"),
    "profiles of one name": (
        lambda raw: raw["profiles"].append({"schedulerName": "muster"}), "ValueRefused", "Duplicate value",
    ),
    "a profile without a name": (lambda raw: raw["profiles"].append({}), "ValueRefused", "Required value"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_said_to_keep_kube_scheduler_from_starting_does(tmp_path: Path, name: str) -> None:
    change, code, said = REFUSED[name]
    text = written(change)
    started, log = start(tmp_path, text)
    assert not started
    assert said in log
    assert (code, Weight.BLOCKS) in [(one.code, one.weight) for one in found(find(text).raw)]


TAKEN: dict[str, Change] = {
    "as shipped": lambda raw: None,
    "what is null counts as not set": top(parallelism=None, percentageOfNodesToScore=None),
    "no limit": top(clientConnection={"qps": -1}),
    "no election, so no look at its times": election(leaderElect=False, leaseDuration="1s"),
    "a plugin that is not there is switched off": lambda raw: raw["profiles"][0].update(
        plugins={"filter": {"disabled": [{"name": "NotThere"}]}}
    ),
    "all extension points": lambda raw: raw["profiles"][0].update(
        plugins={"podGroupPostFilter": {}, "placementScore": {}, "placementGenerate": {}, "multiPoint": {}}
    ),
    "an address that leads nowhere": stanza(1, urlPrefix="127.0.0.1"),
    "all of a stanza": stanza(
        1,
        weight=1,
        tlsConfig={"insecure": True, "serverName": "a"},
        httpTimeout="1h1.5s",
        managedResources=[],
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_not_said_to_keep_it_from_starting_does_not(tmp_path: Path, name: str) -> None:
    text = written(TAKEN[name])
    started, log = start(tmp_path, text)
    assert started, log
    never = {"UnknownField", "WrongType", "ValueRefused"}
    assert not never & {one.code for one in found(find(text).raw)}


def test_every_field_that_kube_scheduler_writes_is_known(tmp_path: Path) -> None:
    text = written(lambda raw: raw["profiles"][0].update(plugins={"permit": {"enabled": []}}))
    assert start(tmp_path, text)[0]
    understood = yaml.safe_load((tmp_path / "understood.yaml").read_text())
    assert understood["profiles"][0]["pluginConfig"]
    assert list(odd(understood)) == []


@pytest.mark.parametrize(
    "text",
    [
        SHIPPED.read_text().replace("config.k8s.io/v1", "config.k8s.io/v1beta3"),
        SHIPPED.read_text() + "podMaxBackoffSeconds: 1\n",
    ],
    ids=["v1beta3", "a key twice"],
)
def test_what_cannot_be_read_kube_scheduler_does_not_read_either(tmp_path: Path, text: str) -> None:
    started, _ = start(tmp_path, text)
    assert not started
    with pytest.raises(InputError):
        find(text)


def test_a_weight_that_is_missing_is_refused(tmp_path: Path) -> None:
    text = written(lambda raw: raw["extenders"][0].pop("weight"))
    started, log = start(tmp_path, text)
    assert not started and "must have a positive weight" in log
    assert [one.code for one in found(find(text).raw)] == ["ValueRefused"]
