"""The command line: options in, one call each, an exit code out. Nothing heavy is imported before it is needed.

Exit codes: 0 every verdict is the expected one; 1 a claim disappoints, or an audited layer differs; 2 bad input; 130
interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from iha_theory import account_commands, audit_command, bound_command

if TYPE_CHECKING:
    from iha_theory.book import Book

COMMANDS = ("verify", "errata", "claims", "show", "build", "run", *bound_command.NAMES, *account_commands.NAMES,
            *audit_command.NAMES)
MEANS = ("exact", "residue", "float", "ball")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}", file=sys.stderr)
        sys.exit(2)


class _Version(argparse.Action):
    """Prints the installed version; looked up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"iha-theory {version('iha-theory')}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The options of every command."""
    top = _Parser(prog="iha-theory", description="Interleaved Head Attention: explicit weights, exact checks, errata.",
                  epilog="Exit codes: 0 as expected, 1 a claim disappoints or a layer differs, 2 bad input, 130 interrupted.")
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    # The class is told to argparse and not to the type checker, whose stubs take no subclass here.
    commands: Any = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    verify = commands.add_parser("verify", help="judge every claim and print the table")
    verify.add_argument("theorems", nargs="*", metavar="THEOREM", help="numbers, for example 3 (default: all)")
    _graph_options(verify)
    verify.add_argument("--features", metavar="FILE", help="features X of the graph, one row for each node")
    verify.add_argument("--k", type=int, help="powers of the filter bank")
    verify.add_argument("--pseudo-heads", type=int, metavar="P", help="pseudo-heads for each head (default: H)")
    verify.add_argument("--n", type=int, help="tokens")
    verify.add_argument("--modulus", type=int, metavar="M", help="modulus of CPM-3")
    verify.add_argument("--coefficient", type=int, metavar="G", help="coefficient of CPM-3")
    verify.add_argument("--means", choices=MEANS, help="how to check (default: the strongest that fits)")
    verify.add_argument("--device", metavar="NAME", help="run Theorems 3 and 4 through the torch layer there, cpu or "
                        "cuda, and judge by computed bounds (needs the extra torch)")
    verify.add_argument("--dtype", choices=("float64", "float32", "tf32", "bfloat16", "float16"),
                        help="of --device (default: float32)")
    verify.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: 1)")
    verify.add_argument("--json", metavar="FILE", help="also write the evidence there, whole or not at all")

    errata = commands.add_parser("errata", help="what is printed and does not hold, with witnesses, and what holds")
    errata.add_argument("theorems", nargs="*", metavar="THEOREM")
    claims = commands.add_parser("claims", help="list every claim; nothing is computed")
    claims.add_argument("theorems", nargs="*", metavar="THEOREM")

    show = commands.add_parser("show", help="every matrix of a worked example (k4, n4) or both sides of a claim")
    show.add_argument("name", help="k4, n4, or a claim such as 3/bank")
    show.add_argument("--format", choices=("text", "markdown"), default="text")

    build = commands.add_parser("build", help="write the weights of a construction to a safetensors file")
    build.add_argument("construction", help="for example polynomial-filter or cyclic-shifts")
    _graph_options(build)
    build.add_argument("--k", type=int, help="powers of the filter bank")
    build.add_argument("--d", type=int, help="features of X (default: 1)")
    build.add_argument("--n", type=int, help="tokens")
    build.add_argument("--pseudo-heads", type=int, metavar="P")
    build.add_argument("--out", metavar="FILE", required=True, help="the file to write, .safetensors")

    run = commands.add_parser("run", help="run a weights file on an input")
    run.add_argument("file", help="a file written by build")
    run.add_argument("--input", metavar="FILE", required=True, help="features or tokens, one row for each token")
    run.add_argument("--out", metavar="FILE", help="write the output there (.csv or .npy) instead of printing it")

    bound_command.add_options(commands, _graph_options)
    account_commands.add_options(commands)
    audit_command.add_options(commands)
    return top


def _graph_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--graph", metavar="NAME|FILE", help="karate, les-miserables, florentine, davis, or a file: "
                         "GraphML, GML, edge list, Matrix Market, CSV, .npy, .npz")
    command.add_argument("--normalize", choices=("none", "sym", "row"), help="D^-1/2 A D^-1/2 or D^-1 A")
    command.add_argument("--orientation", choices=("source-reads-target", "target-reads-source"),
                         help="who reads along an edge u -> v (default: u reads from v)")
    command.add_argument("--weight", metavar="NAME", help="edge attribute to read as weight; none for all 1")


def main(load: Callable[[], Book], argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        load: an importable function that loads the book; called only by commands that need it.
        argv: the arguments; None takes those of the process.

    Returns:
        The exit code.
    """
    top = parser()
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        from iha_theory.files import suggestion

        top.error(f"unknown command {arguments[0]!r}; {suggestion(arguments[0], COMMANDS)}")
    options = top.parse_args(arguments)
    if options.command is None:
        top.print_help()
        return 0
    try:
        from iha_theory import commands, weights_commands

        light = (m for m in (account_commands, audit_command, bound_command) if options.command in m.NAMES)
        home = weights_commands if options.command in ("build", "run") else next(light, commands)
        code: int = getattr(home, options.command)(load, options)
        sys.stdout.flush()
        return code
    except ValueError as error:
        print(f"iha-theory {options.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except MemoryError:
        print(f"iha-theory {options.command}: not enough memory; take fewer powers, tokens or heads", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing to tell it, and Python must not complain when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"iha-theory {options.command}: the output cannot be written ({error.strerror})", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except KeyboardInterrupt:
        print(f"iha-theory {options.command}: interrupted; nothing was written", file=sys.stderr)
        return 130


