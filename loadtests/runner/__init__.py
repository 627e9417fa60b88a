# SPDX-License-Identifier: Apache-2.0
"""What `run.py` drives a real control plane with: what is to be run, the load, and what is seen of it."""
