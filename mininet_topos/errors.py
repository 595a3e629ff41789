"""How starting a network fails."""


class NodeError(Exception):
    """A node does not come up; the message has what it said."""
