"""What the tests of the commands share: small files, and how a refusal looks."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"


def refused(result, *says):
    code, out, err = result
    assert code == 2, out
    lines = [line for line in err.splitlines() if not line.startswith("...")]
    assert len(lines) == 1, err
    for text in says:
        assert text in lines[0]
