# SPDX-License-Identifier: Apache-2.0
"""The report: verdicts from records, tables, one page, and exit codes. Records here are made up."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from loadtests import report
from loadtests.record import RECORDS, Record
from loadtests.reporting.page import Plot, page
from loadtests.reporting.results import Results
from loadtests.reporting.statistics import Estimate
from loadtests.reporting.tables import Table, number, scenarios
from loadtests.reporting.thresholds import load
from loadtests.reporting.verdicts import Verdict, judge
from tests.loadtests.records import HERE, folder, record, thresholds

RATIO = "over: {contender: native, figures: [pods_per_second]}"
RECORDED = 'measured: {mean: 2.0, spread: 0.1, runs: 5, machine: "2 x Test, 4 GiB", date: d, commit: c}'
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Reports on records against targets: exit code, stdout, stderr."""

    def run(
        *records: Record, targets: tuple[str, ...] = (RATIO,), flags: tuple[str, ...] = ()
    ) -> tuple[int, str, str]:
        where = folder(tmp_path / "results", *records)
        code = report.main([str(where), "--thresholds", str(thresholds(tmp_path, *targets)), *flags])
        return code, *capsys.readouterr()

    return run


def pair(run: int, muster: float, native: float) -> list[Record]:
    return [
        record("muster", run, figures={"pods_per_second": muster}),
        record("native", run, figures={"pods_per_second": native}),
    ]


def verdict(tmp_path: Path, target: str, *records: Record) -> Verdict:
    return judge(load(thresholds(tmp_path, target)).targets, Results(records))[0]


# -- statistics


def test_one_run_has_no_interval() -> None:
    assert Estimate.of([3.0]) == Estimate(runs=1, median=3, mean=3, spread=0, low=None, high=None)


def test_the_interval_is_seeded_encloses_the_median_and_narrows_with_agreement() -> None:
    wide, narrow = Estimate.of([1.0, 2.0, 3.0, 4.0, 9.0]), Estimate.of([2.9, 3.0, 3.0, 3.0, 3.1])
    many = [number**1.5 for number in range(1000)]
    assert Estimate.of(many) == Estimate.of(many)
    assert (
        wide.low is not None and wide.high is not None and narrow.low is not None and narrow.high is not None
    )
    assert 1 <= wide.low < wide.median == 3 < wide.high <= 9
    assert narrow.high - narrow.low < wide.high - wide.low


# -- verdicts


def test_a_ratio_is_taken_within_each_run(tmp_path: Path) -> None:
    slow_minute = [*pair(0, 120, 100), *pair(1, 12, 10), *pair(2, 1.2, 1)]  # unpaired, 12 ÷ 10 by luck alone
    found = verdict(
        tmp_path, RATIO, *slow_minute, record("muster", 3, figures={"pods_per_second": 1e6})
    ).found
    assert found is not None
    assert found.runs == 3
    assert found.low == pytest.approx(1.2) == found.high


@pytest.mark.parametrize(
    ("target", "word"),
    [
        pytest.param(RATIO, "met", id="at least, and it is"),
        pytest.param(f"{RATIO}\ntarget: 1.3", "missed", id="at least, and it is not"),
        pytest.param(f'{RATIO}\nop: "<="\ntarget: 1.2', "met", id="at most, and it is just that"),
        pytest.param(f'{RATIO}\nop: "<="\ntarget: 1.1', "missed", id="at most, and it is more"),
        pytest.param(f"{RATIO}\nnodes: 11", "not measured", id="another size"),
        pytest.param(f"{RATIO}\nscenario: other", "not measured", id="another scenario"),
        pytest.param("measure: {figures: [other]}", "not measured", id="another figure"),
        pytest.param(
            "over: {contender: other, figures: [pods_per_second]}", "not measured", id="no such contender"
        ),
        pytest.param("over: {figures: [pods_per_second]}", "missed", id="itself"),
    ],
)
def test_the_median_decides(tmp_path: Path, target: str, word: str) -> None:
    assert verdict(tmp_path, target, *pair(0, 120, 100)).word == word


def test_growth_is_a_ratio_to_another_size(tmp_path: Path) -> None:
    runs = [record(nodes=nodes, figures={"pods_per_second": nodes * 2.0}) for nodes in (10, 5)]
    found = verdict(tmp_path, "over: {nodes: 5, figures: [pods_per_second]}", *runs).found
    assert found is not None and found.median == 2


def test_nothing_is_divided_by_nothing(tmp_path: Path) -> None:
    assert verdict(tmp_path, RATIO, *pair(0, 120, 0)).word == "not measured"


@pytest.mark.parametrize(
    ("target", "value", "regressed"),
    [
        pytest.param(RECORDED, 1.9, False, id="within the margin"),
        pytest.param(RECORDED, 1.7, True, id="less than it was"),
        pytest.param(f'{RECORDED}\nop: "<="\ntarget: 9', 2.1, False, id="more, within the margin"),
        pytest.param(f'{RECORDED}\nop: "<="\ntarget: 9', 2.3, True, id="more than it was"),
        pytest.param(RECORDED.replace("2 x Test", "9 x Other"), 1.7, False, id="measured on another machine"),
        pytest.param("target: 1.1", 1.7, False, id="never recorded"),
    ],
)
def test_worse_than_recorded_is_a_regression(
    tmp_path: Path, target: str, value: float, regressed: bool
) -> None:
    found = verdict(tmp_path, target, record(figures={"pods_per_second": value}))
    assert found.word == "met"
    assert found.regressed is regressed


# -- tables


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.012343, "0.01234"),
        (12.346, "12.35"),
        (1.0, "1"),
        (1234.4, "1,234"),
        (-150000.0, "-150,000"),
    ],
)
def test_numbers_have_four_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_a_scenario_shows_medians_by_contender_and_gaps_where_nothing_was_measured() -> None:
    runs = [record("muster", run, figures={"seconds": value}) for run, value in enumerate((1.0, 5.0, 2.0))]
    writes = {"muster patch pods": 30, "driver create pods": 20}
    plain = record("plain", figures={"pods_bound": 10}, cpu_seconds={"etcd": 0.5}, api_writes=writes)
    (table,) = scenarios(Results([*runs, plain]))
    assert table.title == "gangs, 10 nodes"
    assert table.headers == ("figure", "plain", "muster")
    assert table.rows == [
        ("runs", "1", "3"),
        ("pods_bound", "10", "-"),
        ("seconds", "-", "2"),
        ("cpu_seconds of etcd", "0.5", "-"),
        ("api_writes_per_pod", "5", "-"),
    ]


def test_a_run_done_again_replaces_the_first() -> None:
    (table,) = scenarios(Results([record(figures={"seconds": 9.0}), record(figures={"seconds": 1.0})]))
    assert table.rows == [("runs", "1"), ("seconds", "1")]


# -- the command


def test_a_miss_is_a_result_and_an_error_only_when_judged(run: Run) -> None:
    code, out, _ = run(*pair(0, 100, 100))
    assert code == 0
    assert "1 targets: 0 met, 1 missed, 0 not measured; 0 worse than recorded." in out
    assert re.search(r"^pods/s over native +>= 1\.1 +1 +- +1 +- +missed$", out, re.MULTILINE)
    assert "Machine: 2 x Test, 4 GiB" in out and "Commit: abc" in out
    assert run(flags=("--judge",))[0] == 1


def test_the_median_is_shown_with_its_interval(run: Run) -> None:
    runs = [one for index, value in enumerate((100, 200, 900)) for one in pair(index, value, 100)]
    assert re.search(r"^pods/s over native +>= 1\.1 +2 +1 to 9 +3 +- +met$", run(*runs)[1], re.MULTILINE)


def test_a_regression_is_judged_too(run: Run) -> None:
    code, out, _ = run(record(figures={"pods_per_second": 1.5}), targets=(RECORDED,), flags=("--judge",))
    assert (code, "met, regressed" in out) == (1, True)


def test_what_was_not_measured_is_not_held_against_anybody(run: Run) -> None:
    assert run(record(), flags=("--judge",))[0] == 0


def test_records_with_nothing_in_them_are_reported(run: Run, tmp_path: Path) -> None:
    assert run(record(), record("native", gang_seconds=[1.0]), record("x", filter_buckets=[(1.0, 0)]))[0] == 0
    assert (tmp_path / "results" / report.PAGE).exists()


def test_unlike_machines_are_told(run: Run) -> None:
    _, out, _ = run(record(), record("native", machine=msgspec.structs.replace(HERE, cpus=64)))
    assert "Warning: records of unlike machines" in out


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param(None, "cannot read", id="no records"),
        pytest.param("", "holds no records", id="an empty file"),
        pytest.param("{}\n", "line 1", id="not a record"),
        pytest.param("not JSON\n", "line 1", id="not JSON"),
        pytest.param("\xff\n", "line 1", id="not text"),
        pytest.param("GOOD\n{\n", "line 2", id="cut off in the middle"),
    ],
)
def test_unusable_results_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, complaint: str
) -> None:
    if content is not None:
        good = msgspec.json.encode(record()).decode()
        (tmp_path / RECORDS).write_text(content.replace("GOOD", good), encoding="latin-1")
    assert report.main([str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("report: ") and str(tmp_path / RECORDS) in err and complaint in err


def test_against_other_results_each_figure_has_its_ratio(run: Run, tmp_path: Path) -> None:
    before = folder(tmp_path / "before", record(figures={"seconds": 4.0}, commit="old"))
    code, out, _ = run(record(figures={"seconds": 3.0, "new": 1.0}), flags=("--against", str(before)))
    assert code == 0 and "Against old" in out
    assert re.search(r"^seconds +gangs, 10 nodes +muster +4 +3 +0\.75$", out, re.MULTILINE)
    assert run(flags=("--against", str(tmp_path / "nowhere")))[0] == 2


def test_what_was_measured_can_be_written_down(run: Run, tmp_path: Path) -> None:
    runs = [one for index, value in enumerate((100, 120, 140)) for one in pair(index, value, 100)]
    run(*runs, targets=(RATIO, "scenario: other"), flags=("--update-thresholds",))
    first, second = load(tmp_path / "thresholds.yaml").targets
    assert first.measured is not None and second.measured is None
    found = msgspec.structs.asdict(first.measured)
    assert found.pop("date") == runs[0].began[:10]
    assert found == {"mean": 1.2, "spread": 0.2, "runs": 3, "machine": "2 x Test, 4 GiB", "commit": "abc"}


# -- the page


class Reader(HTMLParser):
    """Tags that are open, and what a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.labels: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        given = {name: value or "" for name, value in attrs}
        self.fetched += [v for name, v in given.items() if name in ("src", "href") and not v.startswith("#")]
        if tag == "svg":
            assert given["role"] == "img"
            self.labels.append(given["aria-label"])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()


def read(file: Path) -> tuple[Reader, str]:
    reader, text = Reader(), file.read_text()
    reader.feed(text)
    assert reader.open == []
    return reader, text


def test_the_page_stands_alone(run: Run, tmp_path: Path) -> None:
    run(*pair(0, 120, 100))
    reader, text = read(tmp_path / "results" / report.PAGE)
    assert reader.fetched == [] and "@import" not in text and "url(http" not in text
    assert '<td class="met">met</td>' in text and "prefers-color-scheme: dark" in text


def test_whatever_is_shown_is_text_and_never_markup() -> None:
    odd = '<b>&"'
    plot = Plot(title=odd, caption=odd, alt=odd, svg="<svg ></svg>")
    text = page(head=[odd], tables=[Table(odd, (odd, odd), [(odd, odd)])], plots=[plot])
    assert odd not in text and "<b>" not in text
    assert text.count("&lt;b&gt;&amp;&quot;") == 10


def test_every_plot_is_a_file_and_told_in_words(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="of the load tests' environment alone")
    runs = [
        record(
            who, index,
            figures={"pods_bound": 10, "pods_per_second": 20 + index},
            cpu_seconds={f"p{n}": n for n in range(9)},
            api_writes={f"{who} patch pods": 15}, gang_seconds=[0.5, 1.5],
            filter_buckets=[(0.001, 0), (0.002, 3), (0.005, 4), (1.0, 4)] if who == "muster" else [],
        )
        for who in ("muster", "native", "another")
        for index in range(2)
    ]  # fmt: skip
    run(*runs)
    where = tmp_path / "results"
    names = {"throughput", "gang-time", "filter-latency", "api-writes", "cpu-seconds"}
    assert {file.stem for file in where.glob("*.png")} == names
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in where.glob("*.png"))
    reader, text = read(where / report.PAGE)
    assert reader.fetched == [] and "currentColor" in text
    throughput, gangs, latency, writes, cpu = reader.labels
    assert "gangs, 10 nodes: native 20.5; gangs, 10 nodes: muster 20.5" in throughput
    assert "muster median 1 s" in gangs
    assert (
        "gangs, 10 nodes: muster 75 % within 2 ms, 25 % within 5 ms." in latency
    )  # empty steps at both ends are left out
    assert "muster 1.5 (" in writes
    assert "native 36 (p8 8, p7 7, p6 6, p5 5, p4 4, p3 3, p2 2, others 1)" in cpu
