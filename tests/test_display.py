"""Weights as labelled text: labels from the axes, zeros as dots, every stage from the input to the output."""

import numpy as np

from constructions import BOOK
from iha_theory import RATIONALS
from iha_theory.display import as_markdown, as_text, labelled, readable, stages


def test_a_matrix_is_labelled_by_its_axes():
    array = RATIONALS.array([[[1, 0], [0, 10]]]) / 2
    assert labelled(array, "source model key", {"model": ["x", "e0"]}) == (
        "source 0  (model x key)\n"
        "      |   0  1\n"
        "x     | 1/2  .\n"
        "e0    |   .  5")


def test_floats_are_shown_short_and_plain_matrices_without_a_place():
    assert labelled(np.array([[0.5, 0.0]]), "token value") == "(token x value)\n      |   0  1\n0     | 0.5  ."


def test_the_examples_end_in_the_bank_and_in_the_shifts():
    for name, last in (("k4", [[1, 10, 100, 1000], [10, 100, 1000, 0], [100, 1000, 0, 0], [1000, 0, 0, 0]]),
                       ("n4", [[1, 2, 3, 4], [2, 3, 4, 1], [3, 4, 1, 2], [4, 1, 2, 3]])):
        shown = stages(BOOK.examples[name]())
        assert [stage for stage, _, _ in shown] == [
            "input", "w_q", "w_k", "w_v", "alpha_q", "alpha_k", "alpha_v", "collapse", "pseudo-queries", "pseudo-keys",
            "pseudo-values", "scores", "attention", "attended", "output"]
        assert all(sentence for _, sentence, _ in shown)
        rows = [line.split("|")[1].split() for line in shown[-1][2].splitlines()[2:]]
        assert rows == [["." if v == 0 else str(v) for v in row] for row in last]


def test_text_and_markdown_hold_the_same_matrices():
    example = BOOK.examples["n4"]()
    for _, _, matrices in stages(example):
        assert matrices in as_text(example)
        assert matrices in as_markdown(example)


def test_a_side_of_a_claim_is_readable_whatever_its_shape():
    assert readable(3) == "3"
    assert readable([1, 0, 2]) == "1, 0, 2"
    assert readable([[1, 0]]) == "(row x column)\n    | 0  1\n0   | 1  ."
    assert readable([[[1]], [[2]]]) == (
        "block 0  (row x column)\n    | 0\n0   | 1\n\nblock 1  (row x column)\n    | 0\n0   | 2")
    long = int("9" * 60)
    assert readable([[long, 0], [1, long]]) == f"[0, 0]  {long}\n[0, 1]  0\n[1, 0]  1\n[1, 1]  {long}"
    assert readable([long, long]) == f"[0]  {long}\n[1]  {long}"
    assert readable([[long]]).startswith("(row x column)")


def test_a_page_has_formulas_a_note_and_a_picture_and_the_terminal_the_note_alone():
    for make in BOOK.examples.values():
        example = make()
        page, text = as_markdown(example, "![picture](place.svg)"), as_text(example)
        order = [page.index(part) for part in (example.text, *example.formulas, example.note, "![picture]", "## input")]
        assert order == sorted(order)
        assert len(example.formulas) == page.count("```math") == 2
        assert example.note in text
        assert "stands at j N + n" in example.note
        assert "virtual position n P + j" in example.note
        assert "math" not in text
        assert "![" not in text
