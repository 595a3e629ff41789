"""The P4Runtime server: what controllers talk to.

``Server`` serves one device; ``Target`` is what makes the devices that run pipelines (``softswitch.switch.Switch``).
"""

from softswitch.p4runtime.config import ConfigError, ServerConfig, Tls
from softswitch.p4runtime.errors import P4Error
from softswitch.p4runtime.pipeline import Target, TargetError
from softswitch.p4runtime.server import Server

__all__ = ["ConfigError", "P4Error", "Server", "ServerConfig", "Target", "TargetError", "Tls"]
