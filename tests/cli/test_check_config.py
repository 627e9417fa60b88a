# SPDX-License-Identifier: Apache-2.0
"""`muster check-config` as it is run: exit codes, forms of the answer, and the example in its page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from app.cli.main import app
from app.domain.errors import InputError
from tests.deploy.manifests import DEPLOY, ROOT
from tests.explain.config.looking import SHIPPED, shipped

PAGE = (ROOT / "docs" / "check-config.md").read_text()


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "PORT", "HOLD_SECONDS", "GANG_SECONDS", "NAMESPACE"):
        monkeypatch.delenv(f"MUSTER_{name}", raising=False)


def run(*words: str, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(app, ["check-config", *words], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def changed(tmp_path: Path, **change: Any) -> str:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**shipped(), **change}))
    return str(file)


def test_the_shipped_files_are_fine() -> None:
    plain, manifest = run(str(SHIPPED)), run(str(DEPLOY / "extender.yaml"))
    assert (plain.exit_code, manifest.exit_code) == (0, 0)
    assert plain.stdout == f"{SHIPPED} keeps Muster's guarantee\n"
    assert manifest.stdout.splitlines()[1:] == [
        "checked: ConfigMap muster-system/muster-scheduler-config, key scheduler-config.yaml"
    ]


def test_a_note_alone_is_fine(tmp_path: Path) -> None:
    result = run(file := changed(tmp_path, parallelism=8))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{file} keeps Muster's guarantee",
        "",
        "NOTE Parallelism",
        "  parallelism is 8, below the default of 16: filtering nodes takes longer",
        "  found: parallelism: 8",
        "  write: parallelism: 16, or nothing",
    ]


def test_what_weakens_ends_with_1(tmp_path: Path) -> None:
    result = run(file := changed(tmp_path, percentageOfNodesToScore=100))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == f"{file} weakens Muster's guarantee (WEAKENS 1)"


def test_what_breaks_comes_first(tmp_path: Path) -> None:
    result = run(changed(tmp_path, parallelism=8, percentageOfNodesToScore=100, extenders=[]))
    assert result.exit_code == 1
    assert re.findall(r"^[A-Z]+ \w+$", result.stdout, re.M) == [
        "BREAKS NoExtender",
        "WEAKENS AllNodes",
        "NOTE Parallelism",
    ]
    first = result.stdout.splitlines()[0]
    assert first.endswith("breaks Muster's guarantee (BREAKS 1, WEAKENS 1)")


def test_as_json_and_as_yaml_with_stdin() -> None:
    text = yaml.safe_dump({**shipped(), "parallelism": 8})
    told, same = run("-", "-o", "json", stdin=text), run("-", "-o", "yaml", stdin=text)
    answer = json.loads(told.stdout)
    assert yaml.safe_load(same.stdout) == answer
    assert (answer["file"], answer["checked"], answer["exit"]) == ("stdin", "", 0)
    assert answer["findings"] == [
        {
            "code": "Parallelism",
            "weight": "note",
            "text": "parallelism is 8, below the default of 16: filtering nodes takes longer",
            "evidence": [{"object": "stdin", "field": "parallelism", "value": "8"}],
            "steps": [{"text": "parallelism: 16, or nothing", "command": "", "decision": True}],
        }
    ]


def test_settings_of_muster_are_told_by_flags() -> None:
    text = SHIPPED.read_text().replace("httpTimeout: 10m", "httpTimeout: 9m40s")
    assert run("-", stdin=text).exit_code == 0
    assert (
        "Muster may hold it for 590 s (gang_seconds)" in run("-", "--gang-seconds", "590", stdin=text).stdout
    )
    both = ("--hold-seconds", "580", "--gang-seconds", "590")
    assert "Muster may hold it for 580 s (hold_seconds)" in run("-", *both, stdin=text).stdout
    assert "WrongPort" in run("-", "--port", "9000", stdin=text).stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot read {file}: No such file or directory"),
        (b"\xff\xfe", "cannot read {file}: not UTF-8"),
        (b"kind: Pod", "{file} holds no KubeSchedulerConfiguration"),
        (b"a: [", "{file} is neither YAML nor JSON: "),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "config.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError) as error:
        run(str(file))
    assert str(error.value).startswith(said.format(file=file))


def test_the_page_shows_what_is_really_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.search(r"```yaml\n(.*?)```", PAGE, re.S)
    answer = re.search(r"```console\n\$ muster check-config my-config.yaml\n(.*?)```", PAGE, re.S)
    assert example is not None and answer is not None
    monkeypatch.chdir(tmp_path)
    Path("my-config.yaml").write_text(example[1])
    assert run("my-config.yaml").stdout == answer[1]
