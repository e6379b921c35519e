"""Prints the last `stat` of a Yosys log as a table: what each module's own cells are, and the whole core's."""

import re
import sys

COLUMNS = ["LUT4", "CCU2C", "TRELLIS_FF", "TRELLIS_DPR16X4", "DP16KD", "MULT18X18D"]


def modules(log):
    """Cells by module, and submodules by module, of the last statistics in the log."""
    text = log[log.rindex("Printing statistics"):]
    found = {}
    for part in re.split(r"^=== ", text, flags=re.M)[1:]:
        name = part.split()[0]
        rows = re.findall(r"^\s+(\d+)\s+(?:\S+\s+)?(\\?\$?\w+)\s*$", part, flags=re.M)
        found.setdefault(name, {cell: int(count) for count, cell in rows})
    return found


def total(found, name, cell):
    own = found[name].get(cell, 0)
    return own + sum(n * total(found, sub, cell) for sub, n in found[name].items() if sub in found and sub != name)


def copies(found, top):
    """How often each module stands below the top."""
    count = {top: 1}
    for sub, n in found[top].items():
        if sub in found and sub != top:
            for name, m in copies(found, sub).items():
                count[name] = count.get(name, 0) + n * m
    return count


def main():
    found = modules(open(sys.argv[1]).read())
    top = "core"
    print(f"{'module':18}{'copies':>8}" + "".join(f"{c:>17}" for c in COLUMNS))
    for name, n in sorted(copies(found, top).items()):
        own = [found[name].get(c, 0) for c in COLUMNS]
        print(f"{name:18}{n:8}" + "".join(f"{v:17}" for v in own))
    print(f"{'core, all':18}{1:8}" + "".join(f"{total(found, top, c):17}" for c in COLUMNS))


main()
