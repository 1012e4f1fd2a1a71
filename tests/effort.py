"""How much the tests prove: enough for a change, or everything with new numbers.

``DDC_SEED`` names the numbers. The nightly run sets it to others each time, and then the proofs are
complete; without it, or where it is empty, they are those that a change has to pass, the same each
time.
"""

from __future__ import annotations

import os
from typing import Final

_GIVEN = os.environ.get("DDC_SEED", "")
SEED: Final = int(_GIVEN or "1")
IS_COMPLETE: Final = _GIVEN != ""
