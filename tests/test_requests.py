"""Which theorems serve a user's options; an option that nothing takes is refused."""

import pytest

from iha_theory import Request
from iha_theory.commands import _serving
from iha_theory.verification import jobs_of
from tests.small_theorems import case, section, theorem


def refusing(request):
    raise ValueError(f"k: {request.k} is refused")


def test_the_refusal_of_the_only_theorem_is_what_the_user_reads():
    taking = theorem(section(case(4), requested=lambda r: (case(9),), options=("k",)), number="1")
    silent = theorem(section(case(4)), section(case(4), requested=lambda r: ()), number="2")
    strict = theorem(section(case(4), requested=refusing, options=("k",)), number="3")
    request = Request(k=5)
    assert _serving((silent, taking, strict), request) == (taking,)
    assert _serving((silent,), request) == (silent,)
    for book in ((strict,), (strict, silent), (silent, strict)):
        with pytest.raises(ValueError, match="k: 5 is refused"):
            _serving(book, request)


def test_an_option_that_nothing_takes_is_refused_and_never_ignored():
    taking = section(case(4), requested=lambda r: (case(9),) if r.k else (), options=("k", "pseudo_heads"))
    other = section(case(4), requested=lambda r: (case(8),) if r.modulus else (), options=("modulus", "n"))
    book = (theorem(taking, other), theorem(section(case(4)), number="8"))
    assert [job.name for job in jobs_of(book, Request(k=2, pseudo_heads=1))] == ["value=9"]
    assert len(jobs_of(book, Request(k=2, modulus=3, n=4))) == 2
    for request, idle in ((Request(k=2, n=4), "n"), (Request(modulus=3, pseudo_heads=2), "pseudo_heads"),
                          (Request(k=2, n=4, coefficient=7), "n, coefficient")):
        with pytest.raises(ValueError, match=f"Theorem 7, 8: nothing that is asked for takes {idle}; leave it out"):
            jobs_of(book, request)
