"""Runs the proof checker over every file, prints each theorem with its assumptions, and writes what was accepted.

Run by ``make proofs``. It needs Coq 8.16 and MathComp 1.15; as root on Debian it installs the two packages. The files
are compiled from nothing, in a copy. It fails with one message, and leaves the lists as they were, if a file does not
compile, a proof is left open or an axiom is used. With ``--check`` it writes nothing and fails if the committed lists
are not what it finds.
"""

# ruff: noqa: S603, S607

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from iha_theory.proofs import INSTANCES, LIST, PRINTED, digest, requires, text_digest
from iha_theory.weights_file import write_whole

HERE = Path(__file__).parent
PACKAGES = ("coq", "libcoq-mathcomp-algebra")
CLOSED = "Closed under the global context"
#: A declaration outside a section is an axiom, whatever the file calls it: an error, not a warning.
FLAGS = ("-w", "-notation-overridden,-ambiguous-paths,+local-declaration")
WORKERS = min(os.cpu_count() or 1, 4)
_FORBIDDEN = re.compile(
    r"\b(Admitted|Abort|Admit\s+Obligations|admit|give_up|Axioms?|Parameters?|Conjectures?|bypass_check|"
    r"Declare\s+(?:ML\s+)?Module|Unset\s+(?:Guard|Positivity|Universe)\s+Checking|Load|Drop)\b")
_PREFIX = r"(?:#\[[^]]*\]\s*)*(?:(?:Local|Global|Program|Polymorphic|Monomorphic)\s+)*"
_ASSUMED = re.compile(_PREFIX + r"(Variables?|Hypothes[ie]s|Context)\b")
_THEOREM = re.compile(_PREFIX + r"(?:Theorem|Corollary)\s+([\w']+)")
_OPENS = re.compile(r"(Section|Module(?:\s+Type)?)\s+(?:Import\s+|Export\s+)?([\w']+)(?!.*:=)", re.DOTALL)
_KNOWN = re.compile(r"From\s+(?:(?:mathcomp|Coq)\s+Require\s+(?:Import|Export)\b|IHA\s+Require\s+(?:Import|Export)\s)")


class Refused(Exception):
    """The proofs cannot be accepted; the message says why."""


def install() -> None:
    """Make sure that the checker and its library are there; Refused, with the packages' names, if they are not."""
    if not is_installed() and shutil.which("apt-get") and os.geteuid() == 0:
        print(f"installing {' and '.join(PACKAGES)} ...", flush=True)
        for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *PACKAGES]):
            subprocess.run(["apt-get", *command], stdout=subprocess.DEVNULL, check=False,
                           env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    if not is_installed():
        raise Refused(f"Coq with MathComp is not here; install the packages {' and '.join(PACKAGES)}")


def is_installed() -> bool:
    """Whether the checker and its library are on this machine."""
    if not (shutil.which("coqc") and shutil.which("coqchk")):
        return False
    library = subprocess.run(["coqc", "-where"], check=True, capture_output=True, text=True).stdout.strip()
    return (Path(library) / "user-contrib/mathcomp/algebra/all_algebra.vo").is_file()


def files(folder: Path) -> list[str]:
    """The proof files, in the order of _CoqProject; Refused if that list and the folder disagree."""
    listed = [line.strip() for line in (folder / "_CoqProject").read_text().splitlines() if line.strip().endswith(".v")]
    differ = sorted({path.name for path in folder.glob("*.v")} ^ set(listed))
    if differ:
        raise Refused(f"_CoqProject and the folder disagree about {', '.join(differ)}")
    return listed


def sentences(text: str) -> Iterator[str]:
    """The sentences of a proof file: comments are left out, nested ones too, and strings are emptied."""
    kept, depth, position = [], 0, 0
    for token in re.finditer(r'\(\*|\*\)|"(?:[^"]|"")*"', text):
        if not depth:
            kept.append(text[position : token.start()] + ('""' if token.group()[0] == '"' else ""))
        position = token.end()
        depth += {"(*": 1, "*)": -1 if depth else 0}.get(token.group(), 0)
    kept.append("" if depth else text[position:])
    return (part.strip() for part in re.split(r"\.(?=\s|$)", " ".join(kept)) if part.strip())


def scan(file: str, text: str) -> list[str]:
    """The theorems of a file, with the modules around them; Refused if it leaves something open or assumed."""
    found: list[str] = []
    around: list[tuple[str, str]] = []
    for sentence in sentences(text):
        if forbidden := _FORBIDDEN.search(sentence):
            raise Refused(f"{file} says {forbidden.group()}; nothing may be left open or assumed")
        if re.search(r"\bRequire\b", sentence) and not _KNOWN.match(sentence):
            raise Refused(f"{file}: write 'From IHA Require Import NAME', for the digest to cover it; got '{sentence}'")
        if (assumed := _ASSUMED.match(sentence)) and not any(kind == "Section" for kind, _ in around):
            raise Refused(f"{file}: {assumed.group(1)} outside a section is an axiom: '{sentence}'")
        if opens := _OPENS.match(sentence):
            around.append((opens.group(1), opens.group(2)))
        elif around and re.match(r"End\b", sentence):
            around.pop()
        elif theorem := _THEOREM.match(sentence):
            found.append(".".join([name for kind, name in around if kind != "Section"] + [theorem.group(1)]))
    return found


def compile_all(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Compile every file after those that it requires; file to what the checker printed. Refused if one fails."""
    needs = {name: requires((folder / name).read_text(encoding="utf-8")) for name in names}
    for name, needed in needs.items():
        if absent := set(needed) - set(names):
            raise Refused(f"{name} requires {', '.join(sorted(absent))}, which is not there")
    order = TopologicalSorter(needs)
    try:
        order.prepare()
    except CycleError as error:
        raise Refused(f"these files require each other: {', '.join(error.args[1])}") from None
    printed: dict[str, str] = {}
    with ThreadPoolExecutor(WORKERS) as pool:
        running: dict[Future[str], str] = {}
        try:
            while order.is_active():
                running |= {pool.submit(_coqc, folder, name): name for name in order.get_ready()}
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    name = running.pop(done)
                    printed[name] = done.result()
                    order.done(name)
        finally:
            pool.shutdown(cancel_futures=True)
    return printed


def _coqc(folder: Path, name: str) -> str:
    done = subprocess.run(["coqc", "-Q", ".", "IHA", *FLAGS, name], cwd=folder, check=False, capture_output=True,
                          text=True)
    if done.returncode:
        raise Refused(f"{name} does not compile\n{done.stderr.strip()[-4000:]}")
    if done.stderr.strip():
        print(f"{name}: {done.stderr.strip()}", flush=True)
    return done.stdout


def recheck(folder: Path, names: Sequence[str]) -> None:
    """Let the second checker read the compiled files again; Refused if it objects or finds an axiom in any of them."""
    modules = [option for name in names for option in ("-norec", f"IHA.{name.removesuffix('.v')}")]
    done = subprocess.run(["coqchk", "-silent", "-o", *modules, "-Q", ".", "IHA"], cwd=folder, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Refused(f"coqchk objects\n{done.stdout.strip()[-4000:]}")
    if "CONTEXT SUMMARY" not in done.stdout:
        raise Refused(f"coqchk prints no summary\n{done.stdout.strip()[-4000:]}")
    if assumed := re.findall(r"^\s+(IHA\.\S+)", done.stdout.partition("CONTEXT SUMMARY")[2], re.MULTILINE):
        raise Refused(f"coqchk finds these assumed: {', '.join(assumed)}")


def ask(folder: Path, theorems: dict[str, list[str]]) -> dict[str, dict[str, tuple[str, str]]]:
    """File to theorem to (statement, assumptions), as the checker prints them."""
    lines = ["From mathcomp Require Import all_ssreflect all_algebra.",
             f"From IHA Require {' '.join(file.removesuffix('.v') for file in theorems)}.",
             "Local Open Scope ring_scope.", "Unset Printing Implicit Defensive.",
             "Set Printing Width 110.", "Set Printing Depth 1000."]
    for number, (file, names) in enumerate(theorems.items()):
        shown = [*requires((folder / file).read_text(encoding="utf-8")), file]
        lines += [f"Module Asked{number}.", f"Import {' '.join(name.removesuffix('.v') for name in shown)}."]
        for name in names:
            full = f"IHA.{file.removesuffix('.v')}.{name}"
            lines += [f'Goal True. idtac "@@ {file} {name}". exact I. Qed.', f"Check @{full}.",
                      'Goal True. idtac "@@@". exact I. Qed.', f"Print Assumptions {full}."]
        lines.append(f"End Asked{number}.")
    with tempfile.TemporaryDirectory() as place:
        script = Path(place) / "ask.v"
        script.write_text("\n".join(lines) + "\n", encoding="utf-8")
        done = subprocess.run(["coqc", "-Q", str(folder), "IHA", "-w", "none", str(script)], check=False,
                              capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"the theorems cannot be printed\n{done.stderr.strip()[-2000:]}")
    found: dict[str, dict[str, tuple[str, str]]] = {file: {} for file in theorems}
    for part in done.stdout.split("@@ ")[1:]:
        mark, _, rest = part.partition("\n")
        file, _, name = mark.strip().partition(" ")
        statement, _, assumptions = rest.partition("@@@")
        found[file][name] = (statement.strip(), assumptions.strip())
    if short := [f"{file}: {name}" for file, names in theorems.items() for name in names if name not in found[file]]:
        raise Refused(f"the checker printed nothing for {', '.join(short)}")
    return found


def judge(folder: Path) -> dict[str, str]:
    """Check everything and print it; the texts of the two lists, by file name."""
    names = files(folder)
    theorems = {name: scan(name, (folder / name).read_text(encoding="utf-8")) for name in names}
    print(f"compiling {len(names)} files ...", flush=True)
    printed = compile_all(folder, names)
    recheck(folder, names)
    answers = ask(folder, theorems)
    for file, found in answers.items():
        print(f"\n{file}\n{'=' * len(file)}")
        for name, (statement, assumptions) in found.items():
            print(f"{statement}\n    {name}: {assumptions}\n")
    if assumed := [f"{file}: {name}" for file, found in answers.items() for name, (_, rests) in found.items()
                   if rests != CLOSED]:
        raise Refused(f"these rest on axioms: {', '.join(assumed)}")
    for file, found in answers.items():
        print(f"{file:<24}{len(found):4} theorems")
    print(f"{sum(map(len, answers.values()))} theorems accepted, no axioms")
    instances = "".join(f"{line}\n" for line in re.findall(r'"([^"]*)"', printed.get(INSTANCES, "")))
    listed = {file: {"digest": digest(folder, file), "theorems": sorted(found)} for file, found in answers.items()}
    content = json.dumps({"files": listed, "instances": text_digest(instances)}, indent=1, sort_keys=True)
    return {LIST: content + "\n", PRINTED: instances}


def main(arguments: Sequence[str] | None = None) -> None:
    """Check everything, print it, and write the lists, or compare them with ``--check``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the committed lists differ")
    parser.add_argument("folder", nargs="?", type=Path, default=HERE, help="where the proofs are")
    options = parser.parse_args(arguments)
    try:
        install()
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place)
            for path in [options.folder / "_CoqProject", *options.folder.glob("*.v")]:
                shutil.copy(path, copy)
            lists = judge(copy)
        for name, content in lists.items():
            path = options.folder / name
            if not options.check:
                write_whole(path, content.encode())
            elif not path.is_file() or path.read_text(encoding="utf-8") != content:
                raise Refused(f"{name} is not what the checker finds now; run make proofs, look, and commit it")
    except Refused as reason:
        sys.exit(f"proofs: {reason}")


if __name__ == "__main__":
    main()
