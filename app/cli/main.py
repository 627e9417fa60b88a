# SPDX-License-Identifier: Apache-2.0
"""`muster` and `kubectl muster`: which commands there are. Each has its flags in a module of `commands/`.

Imports no command but the one that is run, and none of them imports anything heavy before it runs.
Exit codes: 0 fine, 1 judged and found wanting, 2 could not tell (bad input, no API), with one line on stderr.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Final

import click

from app.domain.errors import MusterError

COMMANDS: Final = (
    "serve",
    "explain",
    "top",
    "simulate",
    "snapshot",
    "check-config",
    "release",
    "demo",
    "version",
)
"""In the order of `--help`. A dash in the name is an underscore in the module's."""


class Commands(click.Group):
    """Commands that are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """`command` of the module of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"app.cli.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command


app = Commands(
    name="muster",
    help="Lets the pods of a GPU gang bind only once the whole gang fits.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)


def run() -> None:
    """Console script."""
    plugin = Path(sys.argv[0]).stem == "kubectl-muster"
    try:
        app(prog_name="kubectl muster" if plugin else "muster")
    except MusterError as error:
        print("muster:", *str(error).split(), file=sys.stderr)  # one line, whatever a library has said
        sys.exit(2)
