# SPDX-License-Identifier: Apache-2.0
"""The verbs, the barrier and the rounds, in virtual time."""
