"""Every table of counts, with rows worked by hand from the sizes and with the names of its columns."""

import pytest

import constructions.account_tables as tables_module
from constructions.account_tables import cpm3_table, crossover_table, filter_table, layer_table, model_table


def rows_of(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_a_bank_by_hand_and_a_tie_is_not_smaller():
    # 2HN(N+d) + H(N+d)dL + 4H^2 P: 288 + 144 + 108 with three of each, 288 + 96 + 72 tiled; MHA 5(2N(N+d) + d(N+d)).
    paper, tiled = rows_of(filter_table((5,), (2,), (6,), built=True))
    assert paper == {"k": 5, "d": 2, "N": 6, "routing": "P=H", "H": 3, "L": 3, "P": 3, "IHA": 540, "MHA": 560,
                     "MHA/IHA": 1.037037, "smaller": True, "IHA built": 540, "MHA built": 560}
    assert tiled == paper | {"routing": "tiled", "L": 2, "P": 2, "IHA": 456, "MHA/IHA": 1.22807, "IHA built": 456}
    tie = rows_of(filter_table((3,), (4,), (4,)))[0]
    assert (tie["IHA"], tie["MHA"], tie["smaller"]) == (288, 288, False)


def test_built_is_explained_where_it_is_shown():
    plain, built = filter_table((2,), (1,), (2,)).notes, filter_table((2,), (1,), (2,), built=True).notes
    assert [note.split(":")[0] for note in plain] == ["MHA has k heads. L"]
    assert [note.split(":")[0] for note in built] == ["MHA has k heads. L", "built"]


def test_the_least_n_by_hand():
    # k=5, P = H = L = 3, d=2: (N+2)(4N-8) > 108 from N=6 on (128), not at 5 (84). Tiled: (N+2)(4N-2) > 72 from N=4 on.
    paper, tiled = rows_of(crossover_table((5,), (2,)))
    assert paper == {"k": 5, "d": 2, "routing": "P=H", "H": 3, "L": 3, "P": 3, "a": 2, "b": 4, "least N": 6, "kd + 1": 11,
                     "from kd + 1 on": True}
    assert tiled == paper | {"routing": "tiled", "L": 2, "P": 2, "b": 1, "least N": 4}
    # One head and one power: a = b = 0, so that IHA, which mixes, is never smaller.
    never = rows_of(crossover_table((1,), (1,)))[0]
    assert (never["a"], never["b"], never["least N"], never["from kd + 1 on"]) == (0, 0, None, None)


def test_the_least_n_takes_the_pseudo_heads_asked_for_and_says_what_none_means():
    table = crossover_table((17,), (1,), (2, 3))
    assert [(row["routing"], row["H"], row["L"], row["P"]) for row in rows_of(table)] == [("P=2", 6, 3, 2), ("P=3", 5, 4, 3)]
    assert [note.endswith("No least N: never.") for note in table.notes] == [True]


def test_the_first_n_beyond_kd_that_is_too_small():
    # k=3, H = L = P = 2, d=1: (N+1)(2N-1) > 32 from N=4 = kd + 1 on, where it is 35.
    assert [(row["least N"], row["kd + 1"], row["from kd + 1 on"]) for row in rows_of(crossover_table((3,), (1,)))] == [
        (4, 4, True), (4, 4, True)]
    # With P = 3, H = L = 2: (N+1)(2N-1) > 48 from N=5 on (54), one beyond kd + 1.
    assert [(row["least N"], row["kd + 1"], row["from kd + 1 on"]) for row in rows_of(crossover_table((3,), (1,), (3,)))] == [
        (5, 4, False)]


def test_cpm3_by_hand():
    # N=6, H=3: 2HN(N+1) + (N+1)H^2 + 4H^3 = 252 + 63 + 108, and the MLP's H^2 N^2 + N^2 = 360; 37 * 6^2.5 is 3262.7.
    table = cpm3_table((1, 6))
    one, six = rows_of(table)
    assert six == {"N": 6, "H": 3, "attention IHA": 423, "attention MHA": 546, "total IHA": 783, "total MHA": 798,
                   "attention smaller": True, "total smaller": True, "printed bound IHA": 3262 + 216,
                   "printed bound MHA": 864}
    assert one == {"N": 1, "H": 1, "attention IHA": 10, "attention MHA": 6, "total IHA": 12, "total MHA": 8,
                   "attention smaller": False, "total smaller": False, "printed bound IHA": 38, "printed bound MHA": 4}
    assert len(table.notes) == 1
    assert "IHA built" not in cpm3_table().columns


def test_a_layer_by_hand():
    rows = rows_of(layer_table((2,), (3,), (5,), (7,)))
    sizes = {"H": 2, "P": 3, "width": 7, "head-dim": 5}
    assert rows[0] == sizes | {"weight": "w_q", "axes": "source model key", "parameters": 70, "percent": 27.131783}
    assert [(row["weight"], row["axes"], row["parameters"], row["percent"]) for row in rows[6:]] == [
        ("collapse", "out head pseudo", 12, 4.651163), ("Q", "base weights", 210, 81.395349),
        ("mixing", "alpha_q, alpha_k, alpha_v, collapse", 48, 18.604651), ("all", "Q + 4 H^2 P", 258, 100.0)]


def test_a_model_by_hand():
    # Width 6: 26 layers with 4 * 36 in attention, 2 * 6 * 10240 in the FFN and 12 in two norms, and 6 in the last norm.
    table = model_table((2,), (3,), (2,))
    assert rows_of(table)[0] == {
        "H": 2, "head-dim": 3, "FFN matrices": 2, "embeddings": "shared", "of embeddings": 769_536, "of attention": 3744,
        "of FFN": 3_194_880, "of norms": 318, "total": 3_968_478, "2.4B": False, "P": 2, "mixing/layer": 32,
        "mixing, 26 layers": 832, "percent": 0.020965}
    assert len(table.notes) == 2


@pytest.mark.parametrize(("table", "entries", "row"), [
    # k = 2, H = L = P = 2, d = 1, N = 2: 2HN(N+d) + H(N+d)dL + 4H^2 P = 24 + 12 + 32; multi-head attention has 30.
    (lambda: filter_table((2,), (1,), (2,), built=True), 68, "k=2, d=1, N=2"),
    # N = 2: the layer 2HN(N+1) + (N+1)H^2 + 4H^3 = 68 and the MLP N^2 (H^2 + 1) = 20; multi-head attention has less.
    (lambda: cpm3_table((2,), built=True), 88, "N=2"),
])
def test_weights_are_built_up_to_the_limit(table, entries, row, monkeypatch):
    monkeypatch.setattr(tables_module, "MOST_BUILT", entries)
    assert rows_of(table())[0]["IHA built"] == entries
    monkeypatch.setattr(tables_module, "MOST_BUILT", entries - 1)
    with pytest.raises(ValueError, match=f"^{row}: --built would make {entries} entries, the limit is {entries - 1}"):
        table()


@pytest.mark.parametrize(("least", "most", "rounds"), [
    (0, 0, True), (0, 1, True), (-1, 0, True), (1, 1, False), (-1, -1, False)])
def test_a_total_rounds_to_what_lies_between_two_numbers_inclusive(least, most, rounds, monkeypatch):
    for row in rows_of(model_table()):
        monkeypatch.setattr(tables_module, "LEAST", row["total"] + least)
        monkeypatch.setattr(tables_module, "MOST", row["total"] + most)
        [found] = [other["2.4B"] for other in rows_of(model_table())
                   if other["total"] == row["total"] and other["embeddings"] == row["embeddings"]]
        assert found is rounds
