"""Accessors of the fields that simple_switch itself reads and writes."""

from __future__ import annotations

from softswitch import model as m
from softswitch.codegen.names import Layout

# C name -> BMv2's name; a field that the program lacks reads as 0 and is not written
FIELDS = {
    "ingress_port": "standard_metadata.ingress_port",
    "packet_length": "standard_metadata.packet_length",
    "instance_type": "standard_metadata.instance_type",
    "egress_spec": "standard_metadata.egress_spec",
    "egress_port": "standard_metadata.egress_port",
    "parser_error": "standard_metadata.parser_error",
    "checksum_error": "standard_metadata.checksum_error",
    "ingress_global_timestamp": "intrinsic_metadata.ingress_global_timestamp",
    "egress_global_timestamp": "intrinsic_metadata.egress_global_timestamp",
    "mcast_grp": "intrinsic_metadata.mcast_grp",
    "egress_rid": "intrinsic_metadata.egress_rid",
    "priority": "intrinsic_metadata.priority",
    "enq_timestamp": "queueing_metadata.enq_timestamp",
    "enq_qdepth": "queueing_metadata.enq_qdepth",
    "deq_timedelta": "queueing_metadata.deq_timedelta",
    "deq_qdepth": "queueing_metadata.deq_qdepth",
    "qid": "queueing_metadata.qid",
}


def standard_metadata(program: m.Program, layout: Layout) -> list[str]:
    """``std_FIELD`` and ``std_set_FIELD`` for every standard field."""
    lines: list[str] = []
    for name, bmv2_name in FIELDS.items():
        ref = program.standard(bmv2_name)
        if ref is None or program.field_type(ref).width > 64 or program.field_type(ref).varbit:
            get, put = "return 0;", "(void)value;"
        else:
            width = program.field_type(ref).width
            mask = f" & {(1 << width) - 1:#x}ULL" if width < 64 else ""
            get, put = f"return {layout.field(ref)};", f"{layout.field(ref)} = value{mask};"
        lines.append(f"static inline uint64_t std_{name}(const phv_t *phv) {{ (void)phv; {get} }}")
        lines.append(f"static inline void std_set_{name}(phv_t *phv, uint64_t value) {{ (void)phv; {put} }}")
    return [*lines, ""]
