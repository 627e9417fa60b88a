# SPDX-License-Identifier: Apache-2.0
"""Muster: a scheduler extender that lets the pods of a gang bind only once the whole gang fits."""

__version__ = "0.1.0"
