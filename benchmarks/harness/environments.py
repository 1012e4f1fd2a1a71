"""One environment for each peer, so that nobody is held to the versions of somebody else.

They are made once, in a folder for caches, and named after what is in them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .contenders import Contender


def python(contender: Contender) -> Path:
    """Give the interpreter of a contender; make its environment where there is none.

    Args:
        contender: for whom.
    """
    if not contender.requirements:
        return Path(sys.executable)
    wanted = "\n".join((sys.version, *contender.requirements))
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:12]
    place = _cache() / f"{contender.id}-{digest}"
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        _make(place, contender.requirements)
        (place / "ready").touch()
    return place / "bin" / "python"


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "django-declarative-cron" / "benchmarks"


def _make(place: Path, requirements: tuple[str, ...]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    uv, made = shutil.which("uv"), str(place / "bin" / "python")
    if uv:
        _run(uv, "venv", "--quiet", "--python", sys.executable, str(place))
        _run(uv, "pip", "install", "--quiet", "--python", made, *requirements)
    else:
        _run(sys.executable, "-m", "venv", str(place))
        _run(made, "-m", "pip", "install", "--quiet", *requirements)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        # Installers say at length what they tried; what was wrong comes last.
        raise RuntimeError(
            "".join(done.stderr.strip().splitlines()[-1:]) or "it has no environment"
        )
