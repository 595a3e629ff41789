"""The P4Runtime controller of a multi-plane fabric, and the ``polyplane`` command."""
