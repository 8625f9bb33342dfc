"""The device check can fail: a wrong mask on the device, a check that disappoints, and time that runs out are all seen."""

import pytest
import torch

from benchmarks import gpu_check

RUN = gpu_check._run


def differing(monkeypatch, dtype, **changes):
    """The layer on the device, the one that is not in float64, is another one."""
    def run(layer, x, padding):
        if x.dtype == dtype:
            padding = changes.get("padding", padding)
            for name in set(changes) - {"padding"}:
                setattr(layer, name, changes[name])
        return RUN(layer, x, padding)

    monkeypatch.setattr(gpu_check, "_run", run)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("changes", [{}, {"mask": "token"}, {"padding": None}, {"window": 63}])
def test_a_wrong_mask_on_the_device_is_seen(monkeypatch, dtype, changes):
    bound = dict(gpu_check.BOUNDS["auto"])[dtype]
    differing(monkeypatch, dtype, **changes)
    off = gpu_check._off("cpu", "flat", 64, True, "auto", dtype)
    assert (off <= bound) == (not changes)


def test_decoding_that_differs_from_the_full_pass_is_seen(monkeypatch):
    assert all(is_within for _, is_within in gpu_check.generation("cpu"))
    monkeypatch.setattr("iha_theory.torch_cache.KVCache.extend", lambda cache, k, v, padding: (k, v, padding))
    assert not any(is_within for _, is_within in gpu_check.generation("cpu"))


@pytest.mark.parametrize(("parts", "minutes", "code", "said"), [
    ([[("one", True)], ["a timing"]], 1, 0, "0 checks failed"),
    ([[("one", True), ("two", False)]], 1, 1, "FAIL two"),
    ([[("one", True)], ["a timing"]], 0, 1, "2 parts were cut short"),
])
def test_the_exit_code(monkeypatch, capsys, parts, minutes, code, said):
    monkeypatch.setattr(gpu_check, "parts", lambda device: [iter(part) for part in parts])
    assert gpu_check.main(["cpu", str(minutes)]) == code
    assert said in capsys.readouterr().out


def test_every_timing_runs_on_the_cpu():
    for lines in (gpu_check.timings("cpu", "auto"), gpu_check.decoding("cpu")):
        header, *found = lines
        assert header.split()[-2:] == ["MiB", "floor"]
        assert len(found) in (2, 10)
        assert all(float(line.split()[-5]) > 0 for line in found)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_no_device_is_said(capsys):
    assert gpu_check.main([]) == 2
    assert "finds no CUDA device" in capsys.readouterr().err
