"""The commands ``build`` and ``run``: a construction's weights into a file, and such a file on an input."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from iha_theory.book import Builder, with_positions
from iha_theory.commands import Load, at_least_one, graph_of
from iha_theory.files import suggestion
from iha_theory.graphs import load_matrix
from iha_theory.layer import forward
from iha_theory.scalars import to_float
from iha_theory.weights_file import check_writable, load_weights, save_weights, write_whole


def build(load: Load, options: Namespace) -> int:
    """Write the weights of a construction."""
    builders = load().builders
    if options.construction not in builders:
        raise ValueError(f"unknown construction {options.construction!r}; {suggestion(options.construction, builders)}")
    builder = builders[options.construction]
    check_writable(options.out, options.graph)
    built = builder.make(**_chosen(options, builder))
    about = {"construction": options.construction, "attention": built.attention, "positions": str(built.positions),
             "columns": str(built.columns)}
    save_weights(options.out, built.weights, about)
    sizes = ", ".join(f"{axis}={size}" for axis, size in built.weights.sizes.items())
    print(f"{options.out}: {options.construction}, {built.attention} attention, {sizes}")
    return 0


def _chosen(options: Namespace, builder: Builder) -> dict[str, object]:
    given: dict[str, object] = {"graph": graph_of(options)}
    given |= {name: getattr(options, name) for name in at_least_one(options, "k", "d", "n", "pseudo_heads")}
    given = {name: value for name, value in given.items() if value is not None}
    for name in builder.required:
        if name not in given:
            raise ValueError(f"{options.construction} needs --{name.replace('_', '-')}")
    for name in given:
        if name not in (*builder.required, *builder.optional):
            raise ValueError(f"{options.construction} takes no --{name.replace('_', '-')}")
    return given


def run(load: Load, options: Namespace) -> int:
    """Run a weights file on an input, in float64, and print or write the output."""
    weights, about = load_weights(options.file)
    book = load()
    if about.get("attention") not in book.attentions:
        raise ValueError(f"{options.file}: attention {about.get('attention')!r}; wanted {', '.join(book.attentions)}")
    if options.out is not None:
        check_writable(options.out, options.file, options.input)
        if not options.out.endswith((".csv", ".npy")):
            raise ValueError(f"{options.out}: unknown suffix; wanted .csv or .npy")
    positions, columns = (_count(options.file, about, name) for name in ("positions", "columns"))
    features = to_float(load_matrix(options.input))
    wanted = weights.sizes["model"] - positions
    if features.shape[1] != wanted:
        raise ValueError(f"{options.input}: has {features.shape[1]} columns, but the file was built for {wanted}")
    x = with_positions(features, positions)
    with np.errstate(all="ignore"):
        output = forward(weights, x, book.attentions[about["attention"]])[:, :columns]
    if not np.isfinite(output).all():
        raise ValueError(f"{options.input}: the output leaves the doubles; give smaller numbers")
    text = "\n".join(",".join(repr(float(value)) for value in row) for row in output) + "\n"
    if options.out is None:
        print(text, end="")
    elif options.out.endswith(".csv"):
        write_whole(options.out, text.encode())
    else:
        from io import BytesIO

        stream = BytesIO()
        np.save(stream, output, allow_pickle=False)
        write_whole(options.out, stream.getvalue())
    return 0


def _count(path: str, about: dict[str, str], name: str) -> int:
    text = about.get(name, "")
    if not text.isdigit():
        raise ValueError(f"{path}: {name} is {text!r}, wanted a number; give a file written by build")
    return int(text)


