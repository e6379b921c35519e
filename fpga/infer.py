"""Synthesises the core of a file list for ECP5 and prints the cells of each module."""

import sys

from pyosys import libyosys as ys

design = ys.Design()
sources = [line.strip() for line in open(sys.argv[1]) if not line.startswith("//")]
for source in sources:
    ys.run_pass(f"read_verilog {source}", design)
# The hierarchy is kept, so that each module's share shows; wide LUTs are left out, since their mapping trades LUTs for
# multiplexers and makes small modules look larger than they are.
ys.run_pass("synth_ecp5 -top core -noflatten -nowidelut", design)
ys.run_pass("stat", design)
