# SPDX-License-Identifier: Apache-2.0
"""The HTTP front door: routes only. Knows FastAPI; decides nothing."""
