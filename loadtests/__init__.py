# SPDX-License-Identifier: Apache-2.0
"""How fast Muster is, measured on the machine at hand."""
