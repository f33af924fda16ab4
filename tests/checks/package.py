"""The consumer in tests/package builds against an installed library (find_package) and against the source tree.

usage: package.py SOURCE_FOLDER BUILD_FOLDER VERSION
"""

import subprocess
import sys
import tempfile


def main() -> str | None:
    source, build, version = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        prefix = f"{scratch}/prefix"
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        for way, define in (
            ("find_package", f"-DCMAKE_PREFIX_PATH={prefix}"),
            ("add_subdirectory", f"-DNEURON_KERNELS_SOURCE={source}"),
        ):
            consumer = f"{scratch}/{way}"
            configure = ["cmake", "-G", "Ninja", "-S", f"{source}/tests/package", "-B", consumer, define]
            subprocess.run(configure, check=True)
            subprocess.run(["cmake", "--build", consumer], check=True)
            printed = subprocess.run([f"{consumer}/consumer"], check=True, capture_output=True, text=True).stdout
            expected = f"neuron_kernels {version}: 3 == 3\n"
            if printed != expected:
                return f"{way}: consumer printed {printed!r}, must print {expected!r}"
    return None


if __name__ == "__main__":
    sys.exit(main())
