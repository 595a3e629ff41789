"""The kinds of cases."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.bench import Bench
from tests.fuzz.device_case import device_case
from tests.fuzz.json_case import json_case
from tests.fuzz.rpc_case import rpc_case
from tests.fuzz.text_case import text_case
from tests.fuzz.threads_case import threads_case

KINDS: dict[str, tuple[int, Callable[[Bench], None]]] = {  # share of the time, case
    "device": (45, device_case),
    "json": (25, json_case),
    "rpc": (15, rpc_case),
    "threads": (10, threads_case),
    "text": (5, text_case),
}
