"""All figures of the bench, or those that are named: `make bench`, `make bench FIGURE=web`.

With all of them, the tables are also written to bench/RESULTS.md. Each figure runs in a process of
its own. docs/performance.md says what the figures mean.
"""

import argparse
import dataclasses
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from bench import machine
from bench.figures import FIGURES, Figure
from bench.results import Options, Result

_FILE = Path(__file__).with_name("RESULTS.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", nargs="*", help=f"of {', '.join(FIGURES)}; default: all")
    parser.add_argument("--file", type=Path, help="where all tables go (default: RESULTS.md)")
    for field in dataclasses.fields(Options):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=int, default=field.default)
    arguments = vars(parser.parse_args())
    names, file = arguments.pop("figure"), arguments.pop("file")
    unknown = set(names) - set(FIGURES)
    if unknown:
        parser.error(f"no such figure: {', '.join(sorted(unknown))}")
    options = Options(**arguments)
    tables = [_table(name, FIGURES[name], options) for name in names or FIGURES]
    if file or not names:
        (file or _FILE).write_text("\n\n".join([machine.described(), *tables]) + "\n")


def _table(name: str, figure: Figure, options: Options) -> str:
    print(f"\n## {figure.title}\n", flush=True)
    result = _measured(figure, options)
    print(result, flush=True)
    return f"## {figure.title}\n\n`make bench FIGURE={name}`\n\n{result}"


def _measured(figure: Figure, options: Options) -> Result:
    """In a new process, because Django reads its settings once."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(figure.measure, options).result()


if __name__ == "__main__":
    main()
