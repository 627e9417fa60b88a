# SPDX-License-Identifier: Apache-2.0
"""Muster's tests. `make unit` runs those without a control plane, `make real` those on a real one."""
