# SPDX-License-Identifier: Apache-2.0
"""Pure predicates: whether a node admits a pod, resources aside."""
