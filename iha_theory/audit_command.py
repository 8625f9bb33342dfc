"""The command ``audit``: is a user's layer really Interleaved Head Attention, and more than multi-head attention?"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iha_theory.book import Book

NAMES = ("audit",)
#: Options that set a field of the adapter.
SAID = ("claims", "attention", "mask", "window", "features", "positions")


def audit(load: Callable[[], Book], options: Namespace) -> int:
    """Print the report of a layer; 1 if it differs in any property."""
    from iha_theory.commands import Progress
    from iha_theory.weights_file import check_writable, write_whole

    if not 0 < options.time_limit <= 86400:
        raise ValueError(f"--time-limit: got {options.time_limit:g}, wanted a positive number of seconds, at most 86400")
    if not 0 <= options.seed < 2**31:
        raise ValueError(f"--seed: got {options.seed}, wanted a number from 0 to 2147483647")
    for name in ("window", "features"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            raise ValueError(f"--{name}: got {getattr(options, name)}, wanted at least 1")
    sources = [place.rpartition(":")[0] for place in (options.layer, options.adapter) if place]
    for path, other in ((options.html, options.json), (options.json, options.html)):
        if path is not None:
            check_writable(path, *sources)
            if other is not None and Path(path).resolve() == Path(other).resolve():
                raise ValueError(f"{path}: named for both --html and --json; name two files")
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise ValueError("audit needs torch; install the extra: pip install 'iha-theory[torch]'") from error
    from iha_theory.conformance.findings import Report
    from iha_theory.conformance.supervised import audited

    said: dict[str, Any] = {name: getattr(options, name) for name in SAID if getattr(options, name)}
    with Progress() as progress:
        name, found = audited(options.layer, options.adapter, said=said, black_box=options.black_box,
                              seed=options.seed, time_limit=options.time_limit, tell=progress.now)
    report = Report(name, found)
    if options.format == "markdown":
        print(report.markdown(), end="")
    else:
        for line in report.text():
            print(line)
    for path, content in ((options.html, report.to_html), (options.json, report.to_json)):
        if path is not None:
            write_whole(path, content().encode())
    return 0 if report.conforms else 1


def add_options(commands: Any) -> None:
    """Tell the parser about ``audit``."""
    command = commands.add_parser(
        "audit", help="is a torch layer really IHA, and more than MHA? runs the layer's own code",
        description="Imports the layer, which runs its code, and tries it in a process of its own. A layer that raises, "
        "hangs or returns NaN is a finding. Exit codes: 0 it conforms, 1 it differs, 2 bad input, 130 interrupted.")
    command.add_argument("layer", metavar="PACKAGE.MODULE:FACTORY", help="a module, or what makes one when called "
                         "without arguments; also file.py:factory")
    command.add_argument("--adapter", metavar="PACKAGE.MODULE:NAME", help="an iha_theory.conformance.Adapter, or what "
                         "makes one: where projections, alpha and R live, what the layer says of itself")
    command.add_argument("--black-box", action="store_true", help="leave the weights alone")
    command.add_argument("--claims", choices=("iha", "mha"), help="what the layer is meant to be (default: iha)")
    command.add_argument("--mask", choices=("none", "token", "flat"), help="its mask (default: whichever is found)")
    command.add_argument("--attention", choices=("softmax", "linear", "hard"), help="(default: softmax)")
    command.add_argument("--window", type=int, metavar="W", help="a token sees the last W tokens")
    command.add_argument("--positions", action="store_true", help="the layer adds positions of its own")
    command.add_argument("--features", type=int, metavar="D", help="features (default: read from the layer)")
    command.add_argument("--seed", type=int, default=0, help="of inputs and random parameters (default: 0)")
    command.add_argument("--time-limit", type=float, default=30.0, metavar="S", help="seconds for each property "
                         "(default: 30)")
    command.add_argument("--format", choices=("text", "markdown"), default="text", help="markdown: to paste into an issue")
    command.add_argument("--html", metavar="FILE", help="also write a page there, whole or not at all")
    command.add_argument("--json", metavar="FILE", help="also write the findings there, whole or not at all")
