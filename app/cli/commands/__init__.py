# SPDX-License-Identifier: Apache-2.0
"""One module a command: its flags, and the call of what does the work. Light to import."""
