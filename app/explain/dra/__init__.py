# SPDX-License-Identifier: Apache-2.0
"""Dynamic Resource Allocation (`resource.k8s.io`) as an explanation reads it: raw objects, indexed once."""
