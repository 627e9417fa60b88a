# SPDX-License-Identifier: Apache-2.0
"""The cache: nodes, pods, gangs and reservations. One writer; readers get views. No I/O, no clock."""
