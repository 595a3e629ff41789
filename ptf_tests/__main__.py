"""Runs the packet tests: a network namespace, a switch in it, and PTF's own runner at the other ends of its wires."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptf_tests.packets import CPU_PORT, TIMER_PORT

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "p4src/build"
PROGRAMS = ("fabric", "smartnic")
PORTS = (1, 2, 3, 4, TIMER_PORT)
THRIFT_PORT = 9090  # the namespace has its own
START_S, STOP_S = 60.0, 5.0
EXIT_USAGE = 2


class PtfError(Exception):
    """The tests cannot run; the text is for the user."""


def targets(name: str) -> list[str]:
    """The targets that a name means: ``auto`` is all that are here. Raises PtfError."""
    has_bmv2 = shutil.which("simple_switch_grpc") is not None
    if name == "bmv2" and not has_bmv2:
        raise PtfError("target bmv2 needs simple_switch_grpc on PATH")
    return [name] if name != "auto" else ["softswitch", *(["bmv2"] if has_bmv2 else [])]


def command(*words: str) -> None:
    """Run a command. Raises PtfError."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PtfError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")


@contextmanager
def namespace() -> Iterator[str]:
    """A network namespace with a wire for every port: ``swN`` is the switch's end, ``ptfN`` the test's."""
    name = f"polyplane-ptf-{os.getpid()}"
    command("ip", "netns", "add", name)
    try:
        enter = ("ip", "netns", "exec", name)
        command(*enter, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6")
        command("ip", "-n", name, "link", "set", "lo", "up")
        for port in PORTS:
            command("ip", "-n", name, "link", "add", f"sw{port}", "type", "veth", "peer", "name", f"ptf{port}")
            for end in ("sw", "ptf"):
                command("ip", "-n", name, "link", "set", f"{end}{port}", "up")
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def switch_words(target: str, program: str, folder: Path) -> list[str]:
    """The command line. The softswitch compiles the program before it is ready; BMv2 gets it from the tests."""
    interfaces = [word for port in PORTS for word in ("-i", f"{port}@sw{port}")]
    common = ["--device-id", "1", *interfaces]
    served = ["--grpc-server-addr", f"unix:{folder}/grpc", "--cpu-port", str(CPU_PORT), "--priority-queues", "8"]
    if target == "softswitch":
        own = ["--control", f"{folder}/control", "-L", "warn"]
        loaded = [f"{BUILD}/{program}.json", "--p4info", f"{BUILD}/{program}.p4info.txtpb"]
        return [sys.executable, "-m", "softswitch", "run", *loaded, *common, *served, *own]
    own = ["--thrift-port", str(THRIFT_PORT), "--log-console", "-L", "warn"]
    return ["simple_switch_grpc", "--no-p4", *common, *own, "--", *served]


@contextmanager
def switch(target: str, program: str, space: str, folder: Path) -> Iterator[None]:
    """The switch runs. Raises PtfError where it does not start."""
    log = folder / "switch.log"
    words = ["ip", "netns", "exec", space, *switch_words(target, program, folder)]
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, cwd=ROOT)
    try:
        end = time.monotonic() + START_S
        while not (folder / "grpc").exists():
            if process.poll() is not None or time.monotonic() > end:
                raise PtfError(f"{target} does not start: {log.read_text(errors='replace').strip()[-2000:]}")
            time.sleep(0.05)
        yield
        if process.poll() is not None:
            raise PtfError(f"{target} died ({process.returncode}): {log.read_text(errors='replace').strip()[-2000:]}")
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_ptf(target: str, program: str, tests: list[str], arguments: argparse.Namespace) -> tuple[bool, str]:
    """Run one program's tests; whether all passed, and PTF's last words."""
    with tempfile.TemporaryDirectory(prefix="polyplane-ptf-") as name, namespace() as space:
        folder = Path(name)
        with switch(target, program, space, folder):
            parameters = {"target": target, "program": program, "grpc": f"unix:{folder}/grpc",
                          "control": f"{folder}/control", "thrift": str(THRIFT_PORT)}  # fmt: skip
            words = ["ip", "netns", "exec", space, str(Path(sys.executable).with_name("ptf")),
                     "--test-dir", str(ROOT / "ptf_tests" / program), "--log-dir", f"{folder}/ptf",
                     "--test-case-timeout", "60",
                     "-t", ";".join(f"{key}={value!r}" for key, value in parameters.items())]  # fmt: skip
            if arguments.shuffle is not None:
                words += ["--test-order", "rand", "--test-order-seed", str(arguments.shuffle)]
            for port in PORTS:
                words += ["-i", f"{port}@ptf{port}"]
            environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
            done = subprocess.run([*words, *tests], cwd=ROOT, env=environment, capture_output=True, text=True)
            text = done.stdout + done.stderr
            if done.returncode or arguments.verbose:
                print(text)
                print((folder / "switch.log").read_text(errors="replace")[-4000:])
        return done.returncode == 0, last_words(text)


def last_words(text: str) -> str:
    """How many tests ran, and how they ended."""
    ran = re.findall(r"^Ran \d+ tests? in .*$", text, re.MULTILINE)
    ended = re.findall(r"^(?:OK|FAILED).*$", text, re.MULTILINE)
    return ", ".join(ran + ended) or text.strip()[-300:]


def test_names(program: str) -> set[str]:
    """MODULE and MODULE.CLASS of a program's tests."""
    found: set[str] = set()
    for path in (ROOT / "ptf_tests" / program).glob("*.py"):
        classes = re.findall(r"^class (\w+)\(", path.read_text(), re.MULTILINE)
        found |= {path.stem, *(f"{path.stem}.{name}" for name in classes)}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/ptf", description="Packet tests of every P4 program.")
    parser.add_argument("--target", choices=("auto", "softswitch", "bmv2"), default="auto", help="auto: all installed")
    parser.add_argument("--verbose", action="store_true", help="show PTF's output of passed tests too")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="run each program's tests in another order")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="MODULE or MODULE.CLASS; all without")
    arguments = parser.parse_args()
    chosen = {program: [test for test in arguments.tests if test in test_names(program)] for program in PROGRAMS}
    unknown = set(arguments.tests) - {test for tests in chosen.values() for test in tests}
    try:
        if unknown:
            valid = sorted(name for program in PROGRAMS for name in test_names(program) if "." not in name)
            raise PtfError(f"no test {min(unknown)!r}; the modules are: {', '.join(valid)}")
        chosen_targets = targets(arguments.target)
        if os.geteuid() != 0:
            raise PtfError("network namespaces need root")
        results = [
            (target, program, *run_ptf(target, program, chosen[program], arguments))
            for target in chosen_targets
            for program in PROGRAMS
            if chosen[program] or not arguments.tests
        ]
    except PtfError as error:
        print(f"scripts/ptf: {error}", file=sys.stderr)
        return EXIT_USAGE
    for target, program, _, words in results:
        print(f"{target:<10} {program:<9} {words}")
    return 0 if all(passed for _, _, passed, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
