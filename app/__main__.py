# SPDX-License-Identifier: Apache-2.0
"""`python -m app` is `muster`."""

from app.cli.main import run

run()
