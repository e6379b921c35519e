#!/usr/bin/env bash
# What Yosys infers from the generated Verilog for an ECP5: block RAM, distributed RAM, multipliers, LUTs, module by
# module. Installs Yosys (PyPI's pyosys) into target/yosys the first time.
#
# usage: fpga/infer.sh [options of `heddle gen`, such as --lanes 8 --warps 8]
set -euo pipefail
cd "$(dirname "$0")/.."

python=target/yosys/bin/python
if ! [ -x "$python" ] || ! "$python" -c 'import pyosys' 2>/dev/null; then
    python3 -m venv target/yosys || { echo "infer.sh: python3-venv is missing: apt-get install python3-venv" >&2; exit 1; }
    target/yosys/bin/pip install --quiet pyosys==0.70
fi

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cargo run --quiet --release -- gen "$@" --out "$build/verilog"
"$python" fpga/infer.py "$build/verilog/heddle.f" > "$build/yosys.log" || { tail -n 20 "$build/yosys.log" >&2; exit 1; }
"$python" fpga/table.py "$build/yosys.log"
