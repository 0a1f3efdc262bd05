"""Runs the program `sluice` of the installation that this package belongs to: python -m sluice run ...

The process becomes the program, so exit status, signals and standard streams are the program's own.
"""
import os
import sys

# From this folder: in a wheel, beside Debian's dist-packages, in PREFIX/share/sluice, and in a build.
PLACES = ("bin", "../../../../bin", "../../../../../bin", "../../../build")


def main(name="sluice"):
    folder = os.path.dirname(os.path.realpath(__file__))
    for place in PLACES:
        program = os.path.normpath(os.path.join(folder, place, name))
        if os.access(program, os.X_OK) and os.path.isfile(program):
            os.execv(program, [program, *sys.argv[1:]])
    print(f"{name}: the program is not installed with {folder}", file=sys.stderr)
    return 127


if __name__ == "__main__":
    sys.exit(main())
