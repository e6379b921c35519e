#!/usr/bin/env bash
# What configurations of the core cost on an ECP5-85 of speed grade 6: cells after synthesis, clock after place and route.
# Installs its tools into target/yosys the first time.
#
# usage: fpga/cost.sh [--seeds N] [--json FILE] [CONFIGURATION...]       (fpga/cost.sh --help says more)
set -euo pipefail
caller=$PWD
cd "$(dirname "$0")/.."
case " $* " in *" --help "* | *" -h "*) exec python3 fpga/cost.py --help ;; esac
source fpga/tools.sh
cargo build --quiet --release
script=$PWD/fpga/cost.py python=$PWD/$python
cd "$caller"
exec "$python" "$script" "$@"
