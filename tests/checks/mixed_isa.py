"""Units built with different -march flags make one correct program, in either link order, on the lower machine too.

usage: mixed_isa.py SOURCE_FOLDER OUTPUT_FOLDER COMPILER [FLAG...]

The linker keeps one copy of an inline function that two units hold. Were it the copy of the higher unit, the program
would die on a machine without AVX; so no such function may hold instructions of the higher machine. Built at -O2, as
users are told to: at -O0 the standard library's own functions on floats, std::sqrt and the like, are shared that way.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

LOW, HIGH = "x86-64", "x86-64-v3"
LOW_CPU = ["qemu-x86_64", "-cpu", "Nehalem"]
# AVX and FMA mnemonics start with v; the rest is BMI and MOVBE.
HIGH_INSTRUCTION = re.compile(r"v\w+|andn|bextr|bls\w+|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|movbe")


def tool(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def weak_symbols(unit: Path) -> set[str]:
    lines = (line.split() for line in tool("nm", "--defined-only", str(unit)).splitlines())
    return {fields[-1] for fields in lines if len(fields) == 3 and fields[1] in "WVu"}


def instructions(unit: Path) -> dict[str, set[str]]:
    """The high instructions of each function that has any."""
    found: dict[str, set[str]] = {}
    symbol = ""
    for line in tool("objdump", "-d", "--no-show-raw-insn", str(unit)).splitlines():
        if header := re.fullmatch(r"[0-9a-f]+ <(.+)>:", line):
            symbol = header[1]
        elif (instruction := re.match(r" *[0-9a-f]+:\s+(\w+)", line)) and HIGH_INSTRUCTION.fullmatch(instruction[1]):
            found.setdefault(symbol, set()).add(instruction[1])
    return found


def main() -> str | None:
    source, folder, compiler = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    environment = {name: value for name, value in os.environ.items() if name != "NEURON_KERNELS_ISA"}
    problems = []
    name = f"mixed_isa_{Path(compiler[0]).name}"
    units = {}
    for which, march, file in (("low", LOW, "unit"), ("high", HIGH, "unit"), ("main", LOW, "main")):
        units[which] = folder / f"{name}_{which}.o"
        define = f"-DCOUNT={which}_count"
        command = [*compiler, "-O2", f"-march={march}", define, "-c", str(source / f"{file}.cpp")]
        subprocess.run([*command, "-o", str(units[which])], check=True)

    shared = weak_symbols(units["low"]) & weak_symbols(units["high"])
    used = instructions(units["high"])
    if all("avx" in symbol for symbol in used):  # but for the pages, which every unit holds
        problems.append(f"the high unit holds no instruction of {HIGH}: this check has lost its meaning")
    for symbol in sorted(shared & used.keys()):
        problems.append(f"both units hold {tool('c++filt', symbol).strip()}, one with {used[symbol]}")

    for order in (("main", "low", "high"), ("main", "high", "low")):
        program = folder / name
        subprocess.run([compiler[0], *(str(units[which]) for which in order), "-o", str(program)], check=True)
        for machine in ([], LOW_CPU):
            result = subprocess.run([*machine, str(program)], env=environment)
            if result.returncode != 0:
                problems.append(f"link order {order}, {machine or 'here'}: exit {result.returncode}")
    return "\n".join(problems) or None


if __name__ == "__main__":
    sys.exit(main())
