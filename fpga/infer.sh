#!/usr/bin/env bash
# What Yosys infers from the generated Verilog for an ECP5: block RAM, distributed RAM, multipliers, LUTs, module by
# module. Installs its tools into target/yosys the first time.
#
# usage: fpga/infer.sh [options of `heddle gen`, such as --lanes 8 --warps 8]
set -euo pipefail
cd "$(dirname "$0")/.."

source fpga/tools.sh

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cargo run --quiet --release -- gen "$@" --out "$build/verilog"
"$python" fpga/infer.py "$build/verilog/heddle.f" > "$build/yosys.log" || { tail -n 20 "$build/yosys.log" >&2; exit 1; }
"$python" fpga/table.py "$build/yosys.log"
