"""The control socket of a running switch: ports, queues, faults, packet generators and statistics.

``ControlServer`` runs beside the switch, ``ControlClient`` anywhere on the same machine. Both speak one JSON object a
line over a Unix socket: ``{"call": "queues.show", "args": {"port": 1}}`` is answered by ``{"result": ...}`` or
``{"error": "..."}``. ``operations`` lists the calls.
"""

from .client import ControlClient, default_socket
from .operations import ControlError
from .server import ControlServer

__all__ = ["ControlClient", "ControlError", "ControlServer", "default_socket"]
