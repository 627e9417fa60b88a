# SPDX-License-Identifier: Apache-2.0
"""Pure planning: view + demand → Plan or Refusal. Same input, same bytes out; nothing raises for "no"."""
