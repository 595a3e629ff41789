/* Everything that makes one packet many, or sends it through again: multicast, clones from ingress and from egress,
 * resubmit, recirculate, truncation, and what wins where several are asked for at once.
 * Each pass appends to the trace in the packet, so that the copies that leave tell how they came to be. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

const bit<32> INSTANCE_NORMAL = 0;
const bit<32> INSTANCE_INGRESS_CLONE = 1;
const bit<32> INSTANCE_EGRESS_CLONE = 2;
const bit<32> INSTANCE_RECIRCULATED = 4;

const bit<8> FIELDS_NONE = 0;
const bit<8> FIELDS_MARK = 1;
const bit<8> FIELDS_ALL = 2;

header request_t {
    bit<1> multicast;       // to `group`, beside or instead of the port
    bit<1> clone_ingress;   // to `session`
    bit<1> clone_egress;
    bit<1> resubmit;        // once
    bit<1> recirculate;     // once
    bit<1> truncate;        // to `length`
    bit<1> drop_ingress;    // after all of the above
    bit<1> drop_egress;
    bit<2> fields;          // which field list goes along
    bit<3> port;            // unicast
    bit<3> group;
    bit<4> session;         // 0 is none
    bit<4> _pad;
    bit<8> length;          // bytes
    bit<16> mark;           // preserved by field lists 1 and 2
    bit<16> note;           // preserved by field list 2
}

header trace_t {
    bit<8> ingress_passes;
    bit<8> ingress_instance; // of the last pass
    bit<8> egress_passes;
    bit<8> egress_instance;
    bit<16> egress_port;
    bit<16> rid;
    bit<16> mark; // as found at the start of the last ingress or egress pass
    bit<16> note;
    bit<32> packet_length;
}

struct headers_t {
    request_t request;
    trace_t trace;
}

struct metadata_t {
    @field_list(FIELDS_MARK, FIELDS_ALL)
    bit<16> mark;
    @field_list(FIELDS_ALL)
    bit<16> note;
}

parser ReplicationParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        packet.extract(hdr.trace);
        transition accept;
    }
}

control ReplicationVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ReplicationIngress(inout headers_t hdr, inout metadata_t meta,
                           inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.parser_error != error.NoError) {
            mark_to_drop(standard_metadata);
            return;
        }
        hdr.trace.ingress_instance = (bit<8>)standard_metadata.instance_type;
        hdr.trace.mark = meta.mark;
        hdr.trace.note = meta.note;
        hdr.trace.packet_length = standard_metadata.packet_length;
        if (standard_metadata.instance_type == INSTANCE_NORMAL) {
            hdr.trace.ingress_passes = 1;
            hdr.trace.egress_passes = 0;
        } else {
            hdr.trace.ingress_passes = hdr.trace.ingress_passes + 1;
        }

        meta.mark = hdr.request.mark;
        meta.note = hdr.request.note;
        standard_metadata.egress_spec = (bit<9>)hdr.request.port;
        if (hdr.request.multicast == 1) {
            standard_metadata.mcast_grp = (bit<16>)hdr.request.group;
        }
        if (hdr.request.clone_ingress == 1) {
            if (hdr.request.fields == 1) {
                clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.request.session, FIELDS_MARK);
            } else if (hdr.request.fields == 2) {
                clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.request.session, FIELDS_ALL);
            } else {
                clone(CloneType.I2E, (bit<32>)hdr.request.session);
            }
        }
        if (hdr.request.resubmit == 1 && standard_metadata.instance_type == INSTANCE_NORMAL) {
            if (hdr.request.fields == 1) {
                resubmit_preserving_field_list(FIELDS_MARK);
            } else if (hdr.request.fields == 2) {
                resubmit_preserving_field_list(FIELDS_ALL);
            } else {
                resubmit_preserving_field_list(FIELDS_NONE);
            }
        }
        if (hdr.request.truncate == 1) {
            truncate((bit<32>)hdr.request.length);
        }
        if (hdr.request.drop_ingress == 1) {
            mark_to_drop(standard_metadata);
        }
    }
}

control ReplicationEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (!hdr.trace.isValid()) {
            return;
        }
        hdr.trace.egress_passes = hdr.trace.egress_passes + 1;
        hdr.trace.egress_instance = (bit<8>)standard_metadata.instance_type;
        hdr.trace.egress_port = (bit<16>)standard_metadata.egress_port;
        hdr.trace.rid = standard_metadata.egress_rid;
        if (standard_metadata.instance_type == INSTANCE_INGRESS_CLONE
            || standard_metadata.instance_type == INSTANCE_EGRESS_CLONE) {
            hdr.trace.mark = meta.mark;
            hdr.trace.note = meta.note;
            return;
        }

        if (hdr.request.clone_egress == 1) {
            if (hdr.request.fields == 1) {
                clone_preserving_field_list(CloneType.E2E, (bit<32>)hdr.request.session, FIELDS_MARK);
            } else if (hdr.request.fields == 2) {
                clone_preserving_field_list(CloneType.E2E, (bit<32>)hdr.request.session, FIELDS_ALL);
            } else {
                clone(CloneType.E2E, (bit<32>)hdr.request.session);
            }
        }
        if (hdr.request.recirculate == 1 && hdr.trace.ingress_instance != (bit<8>)INSTANCE_RECIRCULATED) {
            if (hdr.request.fields == 1) {
                recirculate_preserving_field_list(FIELDS_MARK);
            } else if (hdr.request.fields == 2) {
                recirculate_preserving_field_list(FIELDS_ALL);
            } else {
                recirculate_preserving_field_list(FIELDS_NONE);
            }
        }
        if (hdr.request.drop_egress == 1) {
            mark_to_drop(standard_metadata);
        }
    }
}

control ReplicationComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ReplicationDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
        packet.emit(hdr.trace);
    }
}

V1Switch(ReplicationParser(), ReplicationVerifyChecksum(), ReplicationIngress(), ReplicationEgress(),
         ReplicationComputeChecksum(), ReplicationDeparser()) main;
