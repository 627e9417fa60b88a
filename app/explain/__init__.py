# SPDX-License-Identifier: Apache-2.0
"""Pure: from the inventory to the sentence that says why a gang waits."""
