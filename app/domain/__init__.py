# SPDX-License-Identifier: Apache-2.0
"""The values every layer speaks: immutable, no I/O, no clock, no knowledge of JSON."""
