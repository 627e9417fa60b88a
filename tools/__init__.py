# SPDX-License-Identifier: Apache-2.0
"""What makes files of this repository out of others. Not part of what is installed."""
