# SPDX-License-Identifier: Apache-2.0
"""The command line front door. Imports nothing heavy before it knows the command."""
