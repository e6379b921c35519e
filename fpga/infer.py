"""Synthesises the core of a file list for ECP5 and prints the cells of each module."""

import sys

from pyosys import libyosys as ys

design = ys.Design()
for line in open(sys.argv[1]):
    ys.run_pass(f"read_verilog {line.strip()}", design)
# The hierarchy is kept, so that each module's share shows.
ys.run_pass("synth_ecp5 -top core -noflatten", design)
ys.run_pass("stat", design)
