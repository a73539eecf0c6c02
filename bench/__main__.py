"""Measures all figures, or the named ones: `make bench`, `make bench FIGURE=web`.

A run of all figures is also written to bench/RESULTS.md. With `--file`, named figures replace their
sections in that file. Each figure runs in its own process. docs/performance.md explains the
figures.
"""

import argparse
import dataclasses
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from bench import machine
from bench.figures import FIGURES
from bench.results import Options, Result

_FILE: Final = Path(__file__).with_name("RESULTS.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", nargs="*", help=f"of {', '.join(FIGURES)}; default: all")
    parser.add_argument("--file", type=Path, help="where the tables go")
    for field in dataclasses.fields(Options):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=int, default=field.default)
    arguments = vars(parser.parse_args())
    names, file = arguments.pop("figure"), arguments.pop("file")
    unknown = set(names) - set(FIGURES)
    if unknown:
        parser.error(f"no such figure: {', '.join(sorted(unknown))}")
    options = Options(**arguments)
    for name in names or FIGURES:
        section = _section(name, options)
        print(f"\n{section}", flush=True)
        if file or not names:
            write(file or _FILE, FIGURES[name].title, section)


def _section(name: str, options: Options) -> str:
    done = f"`make bench FIGURE={name}{options.changed}`, {machine.moment()}"
    return f"## {FIGURES[name].title}\n\n{done}\n\n{_measured(name, options)}\n"


def _measured(name: str, options: Options) -> Result:
    """Measures a figure in a new process, because Django reads its settings once."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(FIGURES[name].measure, options).result()


def write(file: Path, title: str, section: str) -> None:
    """Writes the section to the file, in the order of FIGURES."""
    text = file.read_text() if file.exists() else ""
    found = {each.partition("\n")[0]: f"## {each}" for each in re.split("(?m)^## ", text)[1:]}
    found[title] = section
    ordered = [found[each.title] for each in FIGURES.values() if each.title in found]
    head = machine.described()
    file.write_text("\n\n".join(part.strip() for part in [head, *ordered]) + "\n")


if __name__ == "__main__":
    main()
