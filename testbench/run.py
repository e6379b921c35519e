#!/usr/bin/env python3
"""Builds the tests and runs each in a process of its own, one more at a time than there are processors: some wait for what
they started.

usage: run.py [--without PATTERN]... [CARGO ARGUMENT]...

Cargo's arguments choose packages and targets, as for `cargo test`. Tests whose name contains a pattern are left out.
The last lines are the slowest tests, in seconds of processor time (of all processes that the test started), and
"N passed, N failed".

Tests that were slow last time begin first, so that none is left alone at the end; the times are kept in
target/test-times.json. The first time, those that a pattern below names begin first.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMES = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "test-times.json"
SLOW_AT_FIRST = re.compile(
    r"^verilog |lanes_64|coverage|mutants_that|lanes_1_|random|bench_has|study|docs::tests|locks::every|cosim::|documentation"
)
# A test that takes longer hangs.
LIMIT = 1800
# Tests with more seconds of processor time than this are named as too long.
LONG = 60
SHOWN = 15
# Process groups of tests under way.
RUNNING = set()


@dataclass
class Test:
    target: str
    name: str
    command: list
    folder: str = str(ROOT)
    cpu: float = 0.0
    wall: float = 0.0
    passed: int = 0
    failed: int = 0
    output: str = ""
    skipped: list = field(default_factory=list)

    @property
    def full_name(self):
        return f"{self.target} {self.name}"


def build(arguments):
    """The test binaries: name of the target, file, folder of the package."""
    command = ["cargo", "test", "--release", "--no-run", "--message-format=json-render-diagnostics", *arguments]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit("the tests cannot be built")
    artifacts = (json.loads(line) for line in built.stdout.splitlines() if line.startswith("{"))
    for artifact in artifacts:
        if artifact["reason"] == "compiler-artifact" and artifact["profile"]["test"] and artifact["executable"]:
            yield artifact["target"]["name"], artifact["executable"], str(Path(artifact["manifest_path"]).parent)


def tests_of(target, binary, folder):
    listed = subprocess.run([binary, "--list", "--format", "terse"], cwd=folder, capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        if line.endswith(": test"):
            name = line.removesuffix(": test")
            yield Test(target, name, [binary, name, "--exact"], folder)


def run(test):
    """Runs the test, with all it starts in a process group that can be ended together."""
    started = time.monotonic()
    environment = {**os.environ, "CARGO_MANIFEST_DIR": test.folder}
    process = subprocess.Popen(
        test.command, cwd=test.folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )
    watchdog = threading.Timer(LIMIT, lambda: os.killpg(process.pid, signal.SIGKILL))
    watchdog.start()
    RUNNING.add(process.pid)
    test.output = process.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    watchdog.cancel()
    RUNNING.discard(process.pid)
    process.returncode = os.waitstatus_to_exitcode(status)
    test.wall, test.cpu = time.monotonic() - started, usage.ru_utime + usage.ru_stime
    results = re.findall(r"^test result: .* (\d+) passed; (\d+) failed", test.output, re.MULTILINE)
    test.passed, test.failed = (sum(int(result[k]) for result in results) for k in (0, 1))
    if (process.returncode != 0 or not results) and test.failed == 0:
        test.failed = 1
        test.output += f"\n{test.full_name}: ended with {process.returncode} after {test.wall:.0f} s, and told no failure"
    test.skipped = [line for line in test.output.splitlines() if line.startswith("SKIPPED")]
    return test


def kept_times():
    try:
        return json.loads(TIMES.read_text())
    except (OSError, ValueError):
        return {}


def main(arguments):
    without = []
    while arguments[:1] == ["--without"]:
        without.append(arguments[1])
        arguments = arguments[2:]
    started = time.monotonic()
    tests = [test for binary in build(arguments) for test in tests_of(*binary)]
    seconds = time.monotonic() - started
    print(f"{len(tests)} tests, built in {seconds:.0f} s", flush=True)
    left_out = [test for test in tests if any(pattern in test.full_name for pattern in without)]
    tests = [test for test in tests if test not in left_out]
    if arguments == ["--workspace"]:
        tests.append(Test("examples", "in documentation", ["cargo", "test", "--release", "--quiet", "--doc", "--workspace"]))

    times = kept_times()
    first = lambda test: times.get(test.full_name, 100.0 if SLOW_AT_FIRST.search(test.full_name) else 0.0)
    tests.sort(key=first, reverse=True)
    started = time.monotonic()
    shown = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count() + 1) as pool:
        try:
            for number, ended in enumerate(as_completed([pool.submit(run, test) for test in tests]), 1):
                test = ended.result()
                if test.failed:
                    print(f"---- {test.full_name}\n{test.output.rstrip()}\n", flush=True)
                if time.monotonic() > shown + 30:
                    shown = time.monotonic()
                    print(f"{number} of {len(tests)} tests, {shown - started:.0f} s", flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for group in list(RUNNING):
                os.killpg(group, signal.SIGKILL)
            sys.exit(130)

    TIMES.write_text(json.dumps({**times, **{test.full_name: round(test.cpu, 2) for test in tests}}, indent=1))
    for line in sorted({line for test in tests for line in test.skipped}):
        print(line)
    for pattern in without:
        count = sum(pattern in test.full_name for test in left_out)
        print(f"left out: {count} tests of {pattern.strip()}")
    cpu, wall = sum(test.cpu for test in tests), time.monotonic() - started
    print(f"tests: {wall:.0f} s by the clock, {cpu / 60:.1f} min of processor time; the slowest, in s of processor time:")
    for test in sorted(tests, key=lambda test: -test.cpu)[:SHOWN]:
        print(f"{test.cpu:7.1f}  {test.full_name}{'  (long)' if test.cpu > LONG else ''}")
    for test in tests:
        if test.failed:
            print(f"FAILED  {test.full_name}")
    passed, failed = sum(test.passed for test in tests), sum(test.failed for test in tests)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


main(sys.argv[1:])
