"""The embedded P4 target: runs what p4c emits for BMv2, natively, and speaks P4Runtime."""
