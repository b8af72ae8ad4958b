"""The command ``gpucost``: words are loaded when they are used, so that it starts light.

A word's module holds a click command; :data:`WORDS` names it with its one-line help, which is all
that ``gpucost --help`` needs. Errors of the program end in one sentence and the exit status of
:mod:`gpucost_tui.errors`; ``--debug`` (or ``GPUCOST_DEBUG=1``) shows the traceback.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from typing import Any, NoReturn

import click

from gpucost_tui import __version__
from gpucost_tui.errors import GpucostError
from gpucost_tui.text import clean

#: word -> (module:attribute, one line of help), in the order of a campaign's life
WORDS: dict[str, tuple[str, str]] = {
    "demo": ("demo:demo", "Make and run the embedded campaign, offline."),
    "new": ("new:new", "Make a campaign from a protocol, a corpus and a model."),
    "check": ("check:check", "Show what stands in the way of sealing."),
    "seal": ("seal:seal", "Freeze a campaign and print its hash."),
    "plan": ("plan:plan", "Show the rotated slots and the window they need."),
    "run": ("run:run", "Run the open slots, here or detached."),
    "status": ("status:status", "Show what is done, open and running."),
    "pause": ("control:pause", "Pause a run after the current attempt."),
    "stop": ("control:stop", "Stop a run after the current batch."),
    "attempts": ("attempts:attempts", "Show the raw table, one row per attempt."),
    "compare": ("compare:compare", "Durations, and which differences are settled."),
    "exclude": ("exclude:exclude", "Leave a pass out for a sealed cause, with trace."),
    "commit": ("commit:commit", "Record the pack that a campaign is rented with."),
    "spend": ("spend:spend", "Record other real spending of a configuration."),
    "decide": ("decide:decide", "The full balance, and which configuration is chosen."),
    "report": ("report:report", "Write the decision note and its page."),
    "export": ("export:export", "Pack a dossier that anybody can verify."),
    "verify": ("verify:verify", "Recompute everything from the files."),
    "price": ("price:price", "Price of packs, and cost per accepted corpus."),
    "window": ("window:window", "Hours of a window, and the packs that cover it."),
    "catalogue": ("catalogue:catalogue", "List, check, add and import price lists."),
    "kit": ("kit:kit", "Write the blank kit for working without this program."),
    "memory": ("memory:memory", "Estimated memory beside what was observed."),
    "op": ("op:op", "Time single operations, apart from any pass."),
    "env": ("env:env", "Show what is installed on this machine."),
}


class ReaderGone(Exception):
    """Standard output was closed by its reader (head, less), told apart from a real error."""


class LazyGroup(click.Group):
    """A group whose commands are imported on use."""

    # click would turn a broken pipe into exit status 1, in parsing (--help) and in running.
    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except BrokenPipeError:
            raise ReaderGone from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGone from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(WORDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in WORDS:
            return None
        module, _, attribute = WORDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(f"gpucost_tui.cli.{module}"), attribute)
        assert isinstance(command, click.Command)  # noqa: S101 - our own table
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Words"):
            formatter.write_dl([(word, help_) for word, (_, help_) in WORDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in WORDS and os.path.isdir(args[0]):  # noqa: PTH112 - stays light
            from gpucost_tui.cli.app import open_folder

            return "DIR", open_folder, args
        if args and args[0] not in WORDS and args[0].lower().endswith((".csv", ".parquet")):
            from gpucost_tui.cli.app import open_table

            return "TABLE", open_table, args
        if args and args[0] not in WORDS:
            import difflib

            near = difflib.get_close_matches(args[0], WORDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else " See 'gpucost --help'."
            ctx.fail(f"There is no word '{clean(args[0], limit=60)}'.{hint}")
        return super().resolve_command(ctx, args)


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="gpucost")
@click.option("--debug", is_flag=True, envvar="GPUCOST_DEBUG", help="Show tracebacks.")
@click.pass_context
def group(ctx: click.Context, debug: bool) -> int | None:
    """Which configuration processes the whole corpus, reaches the minimum quality, finishes before
    the deadline, and commits the least budget?

    Without a word it opens the app on this terminal, with a folder (`gpucost DIR`) the campaign in
    it, with a raw table (`gpucost TABLE.csv`) its attempts."""
    ctx.obj = {"debug": debug}
    if ctx.invoked_subcommand is None:
        from gpucost_tui.cli.app import on_a_terminal, open_here

        if on_a_terminal():
            return open_here()
        click.echo(ctx.get_help())
    return None


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command and leave with its exit status."""
    try:
        _run(args)
    finally:
        _settle()


def _run(args: list[str] | None) -> NoReturn:
    debug = "--debug" in (sys.argv if args is None else args) or bool(
        os.environ.get("GPUCOST_DEBUG")
    )
    try:
        status = group.main(args, prog_name="gpucost", standalone_mode=False)
        if sys.stdout is not None:  # closed by the shell: >&-
            sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)
    except GpucostError as error:
        if debug:
            raise
        fail(str(error), error.exit_status)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        fail(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        fail("interrupted.", 130)
    except (BrokenPipeError, ReaderGone):
        _silence()
        sys.exit(0)
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.filename is None and error.errno == errno.ENOSPC:
            _silence()
            fail(f"the output can't be written ({error.strerror}). Check where it goes.", 3)
        fail(
            f"an error of the program itself: {type(error).__name__}: {error}. "
            "'gpucost --debug …' shows where.",
            1,
        )


def _settle() -> None:
    """Flush what was said; where nobody takes it (a terminal that hung up), leave nothing behind.

    The interpreter would flush once more at its end and turn the exit status into 120.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError, AttributeError):
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _silence() -> None:
    """Leave nothing for the interpreter to flush into a standard output that refuses it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(sentence: str, status: int) -> NoReturn:
    """Print one sentence on standard error and leave."""
    click.echo(f"gpucost: {clean(sentence, one_line=False)}", err=True)
    sys.exit(status)
