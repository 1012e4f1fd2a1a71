"""The dict form of an item: an OJS CronJob (002 CronJob Structure), as far as it goes today.

What of 002 this version does not do is refused by name, never ignored: the ``ojs``
dialect, retry policies, time-outs, overlap policies other than ``coalesce``, runners
other than threads. Until there are retry policies, an entry without ``retry_delay``
gets ``DEFAULT_RETRY_DELAY``.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final, cast

from ..cron import CronExpression, UnknownZoneError, validate_zone
from .declaration import Declaration, Target
from .entry_keys import KEYS, MANAGED, OPTION_KEYS, PLANNED_OPTIONS, Key
from .nearest import listed, proposal
from .parts import (
    delay_hint,
    judge_delay,
    plain_text,
    read_cron,
    refuse_duplicate,
    resolve_callback,
    resolve_command,
    take_name,
)
from .plain import flaw_of_data, flaw_of_text
from .problem import Check
from .reading import Declared, Item
from .schedule import Fold, Gap, Schedule

DEFAULT_RETRY_DELAY: Final = timedelta(minutes=5)
DEFAULT_ZONE: Final = "UTC"
