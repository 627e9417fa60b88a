# SPDX-License-Identifier: Apache-2.0
"""What `report.py` makes of records: verdicts on targets, tables, plots and one HTML page."""
