"""``softswitch stf``: p4c's packet tests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import units
from .errors import UsageError
from .output import show_json, show_table
from .programs import load_program


def stf(
    program: Annotated[Path | None, typer.Argument(metavar="PROGRAM.json", help="BMv2 JSON of the program.")] = None,
    tests: Annotated[list[Path] | None, typer.Argument(metavar="TEST.stf...", help="Each on a new device.")] = None,
    corpus: Annotated[Path | None, typer.Option(metavar="DIR", help="Run every NAME.stf on its NAME.json.")] = None,
    jobs: Annotated[int, typer.Option(min=0, help="Tests of a corpus at a time; 0: one per processor.")] = 0,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that a test of a corpus may take.")] = 120.0,
    seed: Annotated[int, typer.Option(parser=units.uint64, metavar="N", help="Seed of the program's random().")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> int:
    """Run Simple Test Framework files in virtual time; exit code 1 if any fails."""
    if corpus is not None:
        if program is not None:
            raise UsageError("--corpus DIR runs all tests of DIR; it goes without PROGRAM.json and TEST.stf")
        return _run_corpus(corpus, jobs, timeout, as_json)
    if program is None or not tests:
        raise UsageError("give PROGRAM.json and TEST.stf, or --corpus DIR")
    return _run_tests(program, tests, seed, as_json)


def _run_tests(path: Path, tests: list[Path], seed: int, as_json: bool) -> int:
    from softswitch.stf.parser import parse_file
    from softswitch.stf.runner import Result, run
    from softswitch.stf.syntax import StfError

    program = load_program(path)
    for test in tests:
        if not test.is_file():
            raise UsageError(f"no file {str(test)!r}; TEST.stf is a Simple Test Framework file")
    results: list[tuple[str, Result]] = []
    for test in tests:
        try:
            result = run(program, parse_file(test), test.name, seed=seed)
        except StfError as error:
            result = Result((str(error),), ())
        results.append((test.name, result))
    if as_json:
        show_json([
            {"test": name, "passed": result.passed, "problems": result.problems, "notes": result.notes}
            for name, result in results
        ])  # fmt: skip
    else:
        for name, result in results:
            for line in (*result.notes, *result.problems):
                print(line)
            print(f"{name}: {'passed' if result.passed else 'failed'}")
    return 0 if all(result.passed for _, result in results) else 1


def _run_corpus(directory: Path, jobs: int, timeout_s: float, as_json: bool) -> int:
    from softswitch.stf.corpus import cases, run_corpus

    if not cases(directory):
        raise UsageError(f"no NAME.stf in {str(directory)!r}")
    verdicts = list(run_corpus(directory, jobs=jobs, timeout_s=timeout_s))
    failures = [verdict for verdict in verdicts if not verdict.passed]
    if as_json:
        show_json([{"test": one.name, "passed": one.passed, "problems": one.reasons} for one in verdicts])
        return 1 if failures else 0
    if failures:
        show_table("", ("failed", "reason"), [(one.name, _first(one.reasons)) for one in failures])
    print(f"{len(verdicts) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


def _first(reasons: tuple[str, ...]) -> str:
    return reasons[0] + (f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else "")
