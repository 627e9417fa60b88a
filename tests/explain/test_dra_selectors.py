# SPDX-License-Identifier: Apache-2.0
"""Selectors: exactly decided, or not judged; never a wrong "no match"."""

from __future__ import annotations

import pytest

from app.codec.snapshot import JsonObject
from app.explain.dra import selectors
from app.explain.dra.selectors import driver_of, parse

DEVICE = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "H100"},
        "healthy": {"bool": True},
        "cores": {"int": 132},
        "driverVersion": {"version": "550.54.15"},
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:01"},
        "odd": "x",
    },
    "capacity": {"memory": {"value": "80Gi"}, "odd": {"value": "many"}},
}
GPU = "gpu.example.com"


def judge(expressions: list[str], driver: str, device: JsonObject) -> bool | None:
    stages = selectors.bind(expressions, driver)
    return False if stages is None else selectors.judge(stages, device)


@pytest.mark.parametrize(
    ("expression", "verdict"),
    [
        ('device.driver == "gpu.example.com"', True),
        ("device.driver=='nic.example.com'", False),
        ('device.attributes["gpu.example.com"].model == "H100"', True),
        ("device.attributes['gpu.example.com'].model == 'A100'", False),
        ('device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:01"', True),
        ('device.attributes["gpu.example.com"].cores == 132', True),
        ('device.attributes["gpu.example.com"].cores == 131', False),
        ('device.attributes["gpu.example.com"].healthy', True),
        ('device.attributes["gpu.example.com"].healthy == false', False),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) > 0', False),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) == 0', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) < 0', False),
        (' device.driver == "gpu.example.com" &&\n  device.attributes["gpu.example.com"].cores == 1 ', False),
        # false decides, whatever the others come to
        ('device.attributes["gpu.example.com"].gone == 1 && device.driver == "x"', False),
    ],
)
def test_decided(expression: str, verdict: bool) -> None:
    assert judge([expression], GPU, DEVICE) is verdict


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "true",
        'device.driver == "a" || true',
        '(device.driver == "a")',
        '!(device.driver == "a")',
        'device.driver != "a"',
        'device.driver == "a" &&',
        'device.driver == "a" ? true : false',
        'device.driver == "gpu\\u002eexample.com"',
        'device.attributes["gpu.example.com"].model.lowerAscii().matches("^h.*$")',
        'device.attributes["gpu.example.com"].cores > 1',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.0.0"))',
        '"model" in device.attributes["gpu.example.com"]',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("many")) >= 0',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("1Gi")) >= 1',
    ],
)
def test_not_understood(expression: str) -> None:
    assert parse(expression) is None
    assert judge([expression], GPU, DEVICE) is None


@pytest.mark.parametrize(
    "expression",
    [
        'device.attributes["gpu.example.com"].gone == "x"',
        'device.attributes["other.example.com"].model == "H100"',
        'device.attributes["gpu.example.com"].model == 1',
        'device.attributes["gpu.example.com"].healthy == 1',
        'device.attributes["gpu.example.com"].cores == "132"',
        'device.attributes["gpu.example.com"].cores',
        'device.attributes["gpu.example.com"].driverVersion == "550.54.15"',
        'device.attributes["gpu.example.com"].odd == "x"',
        'device.capacity["gpu.example.com"].gone.compareTo(quantity("1Gi")) >= 0',
        'device.capacity["gpu.example.com"].odd.compareTo(quantity("1Gi")) >= 0',
    ],
)
def test_what_would_be_an_error_in_cel_is_no_mismatch(expression: str) -> None:
    assert parse(expression) is not None
    assert judge([expression], GPU, DEVICE) is None


def test_expressions_are_read_in_order() -> None:
    """The first that is not true decides, as it does for the scheduler."""
    yes, no, what = 'device.driver == "gpu.example.com"', 'device.driver == "x"', "f(device)"
    assert judge([yes, no, what], GPU, DEVICE) is False
    assert judge([yes, what, no], GPU, DEVICE) is None
    fails = 'device.attributes["gpu.example.com"].gone'
    assert judge([fails, no], GPU, DEVICE) is None
    assert judge(['device.attributes["gpu.example.com"].healthy', no], GPU, DEVICE) is False
    assert judge([], GPU, DEVICE) is True


def test_a_device_without_attributes_is_not_judged() -> None:
    assert judge(['device.attributes["gpu.example.com"].model == "H100"'], GPU, {"attributes": 1}) is None


def test_the_driver_that_is_named() -> None:
    assert driver_of(["f(device)", 'device.attributes["a"].b && device.driver == "x"']) == "x"
    assert driver_of(['device.driver == "x" || true']) == ""
