"""What ``build`` offers: every construction with every option, run as its record says that it is meant to be run."""

import numpy as np
import pytest

import constructions.builders as builders
from constructions.builders import ATTENTIONS, BUILDERS
from iha_theory import forward, load_graph
from iha_theory.scalars import RATIONALS


@pytest.fixture
def path(tmp_path):
    """The directed path on four nodes."""
    np.save(tmp_path / "path.npy", np.eye(4, k=1, dtype=int))
    return load_graph(tmp_path / "path.npy")


def run(built, features):
    """The meant columns of the output on [features, I]."""
    x = RATIONALS.array(np.concatenate([features, np.eye(built.positions, dtype=int)], axis=1))
    return forward(built.weights, x, ATTENTIONS[built.attention])[:, : built.columns].tolist()


@pytest.mark.parametrize(("name", "options", "axes"), [
    ("polynomial-filter", {"k": 3}, {"head": 2, "pseudo": 2, "value": 2}),
    ("polynomial-filter", {"k": 16, "d": 2, "pseudo_heads": 2}, {"head": 4, "pseudo": 2, "value": 8}),
    ("polynomial-filter-mha", {"k": 3}, {"head": 3, "pseudo": 1, "value": 1}),
    ("polynomial-filter-mha", {"k": 3, "d": 2}, {"head": 3, "pseudo": 1, "value": 2}),
])
def test_a_bank_is_built_with_its_options(path, name, options, axes):
    built = BUILDERS[name].make(graph=path, **options)
    k, d = options["k"], options.get("d", 1)
    assert (built.attention, built.positions, built.columns) == ("linear", 4, k * d)
    assert axes.items() <= built.weights.sizes.items()
    x = [[1, 5], [10, 6], [100, 7], [1000, 8]]
    features = [row[:d] for row in x]
    # Row i of A^t X is row i + t of X, or zero beyond the end of the path.
    beyond = [*features, *([[0] * d] * k)]
    assert run(built, features) == [[value for t in range(k) for value in beyond[i + t]] for i in range(4)]


@pytest.mark.parametrize(("name", "options", "axes"), [
    ("cyclic-shifts", {}, {"head": 3, "pseudo": 3}), ("cyclic-shifts", {"pseudo_heads": 2}, {"head": 3, "pseudo": 2}),
    ("cyclic-shifts-mha", {}, {"head": 5, "pseudo": 1}),
])
def test_shifts_are_built_with_their_options(name, options, axes):
    built = BUILDERS[name].make(n=5, **options)
    assert (built.attention, built.positions, built.columns) == ("hard", 5, 5)
    assert axes.items() <= built.weights.sizes.items()
    tokens = [3, 1, 4, 1, 5]
    assert run(built, [[t] for t in tokens]) == [[tokens[(i + s) % 5] for s in range(5)] for i in range(5)]


@pytest.mark.parametrize(("name", "options", "entries"), [
    # 2HN(N+d) + H(N+d)dL + 4H^2 P with H = L = P = 1000, N = 4, d = 2; then with P = 7.
    ("polynomial-filter", {"k": 10**6, "d": 2}, 2 * 1000 * 4 * 6 + 1000 * 6 * 2000 + 4 * 1000**3),
    ("polynomial-filter", {"k": 10**6, "d": 2, "pseudo_heads": 7}, 2 * 1000 * 4 * 6 + 1000 * 6 * 2000 + 4 * 1000**2 * 7),
    ("polynomial-filter-mha", {"k": 10**6, "d": 2}, 10**6 * (2 * 4 * 6 + 2 * 6)),
    # 2HN(N+1) + (N+1)H^2 + 4H^2 P with N = 3600, H = 60, P = 60 and 7; N heads: 2N^2(N+1) + N(N+1).
    ("cyclic-shifts", {"n": 3600}, 2 * 60 * 3600 * 3601 + 3601 * 3600 + 4 * 60**3),
    ("cyclic-shifts", {"n": 3600, "pseudo_heads": 7}, 2 * 60 * 3600 * 3601 + 3601 * 3600 + 4 * 3600 * 7),
    ("cyclic-shifts-mha", {"n": 1000}, 2 * 1000**2 * 1001 + 1000 * 1001),
])
def test_weights_beyond_reach_are_refused_by_name_and_with_their_number(path, name, options, entries):
    given = options if "n" in options else {"graph": path, **options}
    with pytest.raises(ValueError, match=rf"^{name}: the weights would have {entries:,} entries, more than 20,000,000"):
        BUILDERS[name].make(**given)


def test_the_largest_weights_are_built_and_one_entry_more_is_not(monkeypatch):
    # N = 2 heads: 2N^2(N+1) + N(N+1) = 30 entries.
    monkeypatch.setattr(builders, "LARGEST", 30)
    assert BUILDERS["cyclic-shifts-mha"].make(n=2).weights.sizes["head"] == 2
    monkeypatch.setattr(builders, "LARGEST", 29)
    with pytest.raises(ValueError, match="30 entries, more than 29"):
        BUILDERS["cyclic-shifts-mha"].make(n=2)
