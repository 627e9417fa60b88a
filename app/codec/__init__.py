# SPDX-License-Identifier: Apache-2.0
"""Bytes ⇄ domain values. Knows JSON and the few wire fields used; decides nothing."""
