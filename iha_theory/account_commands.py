"""The commands ``counts`` and ``flops``: what is counted, as tables, CSV or JSON."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iha_theory.book import Book
    from iha_theory.tables import Table

NAMES = ("counts", "flops")
ACCOUNTS = ("filter", "crossover", "cpm3", "layer", "model")
FLOP_TABLES = ("schedule", "match", "cache")

#: The largest size that an option takes, and the most rows of a table: a table is for a reader.
MAX_SIZE, MAX_ROWS = 10**9, 10_000


def sizes(text: str) -> tuple[int, ...]:
    """The sizes of an option: ``4``, ``1-10`` or ``1,4,9-12``, each from 1 to :data:`MAX_SIZE`.

    Raises:
        argparse.ArgumentTypeError: anything else.
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = [_size(end, text) for end in ((first, last) if dash else (first,))]
        if ends[0] > ends[-1]:
            raise argparse.ArgumentTypeError(f"{part.strip()} runs backwards; wanted {ends[-1]}-{ends[0]}")
        if ends[-1] - ends[0] + len(found) >= MAX_ROWS:
            raise argparse.ArgumentTypeError(f"{_shown(text)} holds more than {MAX_ROWS} sizes; take a "
                                             "shorter range")
        found += range(ends[0], ends[-1] + 1)
    return tuple(dict.fromkeys(found))


def size(text: str) -> int:
    """One size from 1 to :data:`MAX_SIZE`."""
    return _size(text.strip(), text)


def _size(part: str, text: str) -> int:
    if not (part.isascii() and part.isdigit()) or not 1 <= len(part) <= 30 or not 1 <= int(part) <= MAX_SIZE:
        raise argparse.ArgumentTypeError(f"got {_shown(text)}, wanted whole numbers from 1 to {MAX_SIZE}, "
                                         "for example 4 or 1-10,16")
    return int(part)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def add_options(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The options of both commands."""
    counts = commands.add_parser("counts", help="parameters and heads, and when IHA is smaller")
    counts.add_argument("account", nargs="?", choices=ACCOUNTS, default="filter",
                        help="filter banks (default), when they cross over, CPM-3, one layer, the language "
                             "model")
    _range(counts, "--k", "powers of the filter bank")
    _range(counts, "--d", "features of X")
    _range(counts, "--n", "tokens")
    _range(counts, "--heads", "heads of a layer or of the model", "H")
    _range(counts, "--pseudo-heads", "pseudo-heads for each head", "P")
    _range(counts, "--head-dim", "features of a head", "D")
    _range(counts, "--width", "width of the layer's input", "D")
    counts.add_argument("--built", action="store_true", default=None,
                        help="also build the weights of filter and cpm3 and count their entries")
    _output(counts)

    flops = commands.add_parser("flops", help="score pairs and FLOPs of schedules, the window that matches, "
                                              "caches")
    flops.add_argument("table", nargs="?", choices=FLOP_TABLES, default="schedule",
                       help="each layer and the whole schedule (default), the matching window, bytes of the "
                            "cache")
    _range(flops, "--n", "tokens (default: 8192)")
    _range(flops, "--pseudo-heads", "pseudo-heads for each head (default: 2)", "P")
    flops.add_argument("--heads", type=size, metavar="H", help="heads (default: 20)")
    flops.add_argument("--head-dim", type=size, metavar="D", help="features of a head (default: 128)")
    flops.add_argument("--width", type=size, metavar="D", help="width of the model (default: heads times "
                                                               "head-dim)")
    flops.add_argument("--groups", type=size, metavar="G", help="key-value heads of gqa (default: 4)")
    flops.add_argument("--mask", choices=("token", "flat", "flat-token"), help="causal mask (default: token)")
    flops.add_argument("--schedule", metavar="LAYERS", help="COUNT:local-KIND or COUNT:global-KIND, by "
                                                            "commas; KIND is mha, gqa or iha (default: "
                                                            "4:local-iha,1:global-mha)")
    flops.add_argument("--window", type=size, metavar="W", help="window of the local layers, in tokens, or "
                                                                "in virtual tokens with --mask flat "
                                                                "(default: N/(2P^2) tokens)")
    flops.add_argument("--measure", choices=("pairs", "flops"),
                       help="what match compares: score pairs (default) or all FLOPs")
    flops.add_argument("--bytes", type=size, metavar="B", help="bytes of a number in the cache (default: 2)")
    _output(flops)


def _range(command: argparse.ArgumentParser, name: str, says: str, letter: str | None = None) -> None:
    command.add_argument(name, type=sizes, metavar=letter or name[2:].upper(),
                         help=f"{says}; a range such as 1-10,16 makes more rows")


def _output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--format", choices=("table", "csv", "json"), default="table")
    command.add_argument("--out", metavar="FILE", help="write there, whole or not at all, instead of "
                                                       "printing")


def counts(load: Callable[[], Book], options: Namespace) -> int:
    """Print or write the table of parameters that the options ask for."""
    from iha_theory.weights_file import check_writable

    if options.out is not None:
        check_writable(options.out)
    account = load().accounts[options.account]
    return _written(account.make(**_given(options, f"the table {options.account}", account.options)), options)


def flops(load: Callable[[], Book], options: Namespace) -> int:
    """Print or write the table of FLOPs, windows or caches that the options ask for."""
    from iha_theory import flop_tables
    from iha_theory.weights_file import check_writable

    if options.out is not None:
        check_writable(options.out)
    make, names = flop_tables.TABLES[options.table]
    return _written(make(**_given(options, f"the table {options.table}", names)), options)


def _given(options: Namespace, name: str, taken: tuple[str, ...]) -> dict[str, object]:
    """The options that were given, refused unless the table takes them and has a bearable number of rows."""
    own = {"command", "account", "table", "format", "out"}
    given = {name: value for name, value in vars(options).items() if name not in own and value is not None}
    rows = 1
    for option, value in given.items():
        if option not in taken:
            listed = ", ".join(f"--{other.replace('_', '-')}" for other in taken)
            raise ValueError(f"{name} takes no --{option.replace('_', '-')}; it takes {listed}")
        rows *= len(value) if isinstance(value, tuple) else 1
    if rows > MAX_ROWS:
        raise ValueError(f"{name} would have {rows} rows, the limit is {MAX_ROWS}; take shorter ranges")
    return given


def _written(table: Table, options: Namespace) -> int:
    from iha_theory.tables import written
    from iha_theory.weights_file import write_whole

    text = written(table, options.format)
    if options.out is None:
        print(text, end="")
    else:
        write_whole(options.out, text.encode())
    return 0
