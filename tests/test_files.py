"""A number is read exactly, a file is read if it is a bearable text, and everything else is refused."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
from flint import fmpq

from iha_theory.files import (
    MAX_ARRAY_BYTES,
    MAX_DIGITS,
    MAX_EXPONENT,
    MAX_FILE_BYTES,
    exact_number,
    known_suffix,
    read_text,
    refuse_large,
    shown,
    suggestion,
)
from tests.refusals import refusal_of, written


@pytest.mark.parametrize(("text", "numerator", "denominator"), [
    ("0.1", 1, 10), ("1e-3", 1, 1000), ("-2.50", -5, 2), ("+7", 7, 1), (".5", 1, 2), ("5.", 5, 1),
    ("1/3", 1, 3), ("-4/6", -2, 3), ("12.5E+1", 125, 1), ("1e-00000003", 1, 1000), ("-0", 0, 1),
    ("-0.25e1", -5, 2),
    ("9007199254740993", 2**53 + 1, 1), (f"1e{MAX_EXPONENT}", 10**MAX_EXPONENT, 1),
    (f"1e-{MAX_EXPONENT}", 1, 10**MAX_EXPONENT), ("1" * MAX_DIGITS, int("1" * MAX_DIGITS), 1),
    (f"1/{'3' * MAX_DIGITS}", 1, int("3" * MAX_DIGITS)),
])
def test_a_decimal_is_read_exactly(text, numerator, denominator):
    assert exact_number(text) == fmpq(numerator, denominator)


@pytest.mark.parametrize(("text", "reason"), [
    ("", "not a number"), ("one", "not a number"), (".", "not a number"), ("1e", "not a number"),
    ("1_000", "not a number"), ("\u0661", "not a number"), ("1 2", "not a number"), ("0x10", "not a number"),
    ("nan", "not finite"), ("-inf", "not finite"), ("Infinity", "not finite"),
    ("1+2j", "complex"), ("2i", "complex"), ("(1-0.5j)", "complex"), ("1/0", "division by zero"),
    ("1e999999999", f"-{MAX_EXPONENT} to {MAX_EXPONENT}"), (f"1e-{MAX_EXPONENT + 1}", f"to {MAX_EXPONENT}"),
    ("1e" + "9" * 9999, f"-{MAX_EXPONENT} to {MAX_EXPONENT}"),
    ("1" * (MAX_DIGITS + 1), f"at most {MAX_DIGITS} digits"), ("0." + "1" * MAX_DIGITS, "1001 digits"),
    ("1/" + "3" * (MAX_DIGITS + 1), f"at most {MAX_DIGITS} characters"),
    ("1" * 100_000 + "x", "not a number"),
])
def test_a_text_that_is_no_finite_rational_is_refused(text, reason):
    assert reason in refusal_of(exact_number, text)


def test_the_limits_are_those_that_are_documented():
    assert (MAX_DIGITS, MAX_EXPONENT, MAX_FILE_BYTES, MAX_ARRAY_BYTES) == (1000, 1000, 2**27, 2**29)


def test_a_long_text_is_cut_and_a_short_one_is_shown_whole():
    assert shown("a" * 40) == "'" + "a" * 40 + "'"
    assert shown("a" * 41) == "'" + "a" * 37 + "...'"


def test_what_the_user_may_have_meant_is_suggested():
    assert suggestion("weigth", ["capacity", "weight"]) == "did you mean 'weight'? known: capacity, weight"
    assert suggestion("qqq", ["capacity", "weight"]) == "known: capacity, weight"
    assert suggestion("aaa", ["aaab", "aaac", "aaad"]).count("'aaa") == 2
    assert suggestion("qqq", ["a\nb"] * 21) == "known: " + ", ".join(["'a\\nb'"] * 20)


def test_a_suffix_is_known_in_either_case_or_refused_with_the_nearest():
    assert known_suffix("a.CSV", [".csv"]) == ".csv"
    assert refusal_of(known_suffix, "a.csw", [".csv", ".gml"]) == (
        "a.csw: the suffix '.csw' names no format; did you mean '.csv'? known: .csv, .gml")


def test_lines_of_every_system_and_a_byte_order_mark_are_read(tmp_path):
    path = written(tmp_path, "a.csv", b"\xef\xbb\xbf1,2\r\n3,4\r5,6\n")
    assert read_text(path) == "1,2\n3,4\n5,6\n"


def test_a_text_in_another_encoding_is_refused(tmp_path):
    path = written(tmp_path, "a.csv", b"0,1\n\xff,0\n")
    assert refusal_of(read_text, path) == (
        f"{path}: is not UTF-8 text (byte 0xff at offset 4); save it as UTF-8")


@pytest.mark.parametrize("content", ["", " \n\t\n"])
def test_an_empty_file_is_refused(tmp_path, content):
    path = written(tmp_path, "a.csv", content)
    assert refusal_of(read_text, path) == f"{path}: is empty; wanted a file with content"


def test_what_cannot_be_opened_is_refused(tmp_path, monkeypatch):
    missing = tmp_path / "missing.csv"
    assert refusal_of(read_text, missing) == (
        f"{missing}: cannot be read (No such file or directory); wanted the path of a readable file")
    assert "cannot be read (embedded null byte)" in refusal_of(read_text, "a\0.csv")
    assert "cannot be read (File name too long)" in refusal_of(read_text, "a" * 300 + ".csv")

    def refuse(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert "cannot be read (Permission denied)" in refusal_of(read_text, Path(__file__))


def test_only_regular_files_of_a_bearable_size_are_read(tmp_path):
    assert refusal_of(read_text, tmp_path) == f"{tmp_path}: is a directory; wanted the path of a file"
    assert refusal_of(known_suffix, tmp_path, []) == f"{tmp_path}: is a directory; wanted the path of a file"
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is no regular file" in refusal_of(read_text, tmp_path / "pipe.csv")
    with (tmp_path / "large.csv").open("wb") as stream:
        stream.truncate(MAX_FILE_BYTES + 1)
    assert f"has {MAX_FILE_BYTES + 1} bytes, the limit is" in refusal_of(read_text, tmp_path / "large.csv")


def test_the_size_of_a_file_is_judged_by_its_record_and_by_its_content(tmp_path, monkeypatch):
    monkeypatch.setattr("iha_theory.files.MAX_FILE_BYTES", 5)
    assert read_text(written(tmp_path, "a.csv", "1,234")) == "1,234"
    path = written(tmp_path, "b.csv", "1,2345")
    assert "has 6 bytes, the limit is 5" in refusal_of(read_text, path)
    opened = []
    monkeypatch.setattr("builtins.open", lambda *arguments: opened.append(arguments))
    assert "has 6 bytes, the limit is 5" in refusal_of(read_text, path)
    assert not opened
    monkeypatch.undo()
    monkeypatch.setattr("iha_theory.files.MAX_FILE_BYTES", 5)
    monkeypatch.setattr("os.stat", lambda _: SimpleNamespace(st_mode=stat.S_IFREG, st_size=0))
    grown = written(tmp_path, "c.csv", "1,2345678")
    assert "has 6 bytes, the limit is 5" in refusal_of(read_text, grown)


def test_a_name_that_does_not_print_is_quoted(tmp_path):
    assert refusal_of(read_text, tmp_path / "a\nb.csv").startswith(f"'{tmp_path}/a\\nb.csv': cannot be read")


def test_a_matrix_is_refused_before_it_is_allocated():
    refuse_large("a.csv", 3344, 3344)
    assert refusal_of(refuse_large, "a.csv", 3345, 3345) == (
        "a.csv: 3345 rows and 3345 columns of exact numbers need about 0.5002 GiB of memory, the limit is "
        f"{MAX_ARRAY_BYTES / 2**30} GiB; take a smaller matrix")
