"""Look for an input that a target does not stand: `python -m tests.fuzz TARGET --minutes 60`.

Needs atheris. What follows a new branch is kept in a folder of its own, `tests/fuzz/found`, from
which ``--keep`` moves the smallest set that covers the same into the corpus.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    given = _arguments()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    os.environ.setdefault("DDC_TEST_DATABASE", "sqlite")
    import atheris

    with atheris.instrument_imports(include=["django_declarative_cron"]):
        import django

        django.setup()
        from tests.fuzz.targets import TARGETS

    target = TARGETS[given.target]
    found, corpus = HERE / "found" / given.target, HERE / "corpus" / given.target
    found.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={given.minutes * 60:.0f}", "-max_len=400", "-timeout=20"]
    options += [f"-artifact_prefix={found}/", "-print_final_stats=1"]
    folders = [str(corpus), str(found)] if given.keep else [str(found), str(corpus)]
    if given.keep:
        options.append("-merge=1")
    atheris.Setup([sys.argv[0], *options, *folders], target)
    atheris.Fuzz()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", choices=["posix", "ojs", "entry", "posted", "row"])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--keep", action="store_true", help="move what is new into the corpus")
    return parser.parse_args()


if __name__ == "__main__":
    main()
