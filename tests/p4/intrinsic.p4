/* The metadata that the target fills in and reads, and the ways to end a packet: drop marks set and taken back, exit and
 * return in ingress and egress, egress_spec 511 by hand. `result` is the metadata as ingress and egress saw it. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>
#include "include/ethernet.p4"

const port_t DROP_PORT = 511;

enum bit<8> operation_t {
    FORWARD = 0,
    DROP_INGRESS = 1,
    DROP_TAKEN_BACK = 2,   // marked, then egress_spec is set again
    DROP_PORT_BY_HAND = 3,
    EXIT_INGRESS = 4,      // before the port is chosen a second time
    RETURN_INGRESS = 5,
    EXIT_IN_ACTION = 6,
    DROP_EGRESS = 7,
    EXIT_EGRESS = 8,
    CHANGE_SPEC_EGRESS = 9, // has no effect
    SHRINK = 10,           // a header less
    GROW = 11,             // a header more
    DROP_THEN_EXIT_EGRESS = 12
}

header request_t {
    operation_t operation;
    bit<2> _pad;
    bit<3> port;
    bit<3> other_port;
}

header result_t {
    bit<7> _pad0;
    port_t ingress_port;
    bit<7> _pad1;
    port_t ingress_spec;     // egress_spec at the end of ingress
    bit<7> _pad2;
    port_t egress_port;
    bit<7> _pad3;
    port_t egress_spec;      // at the start of egress
    bit<8> ingress_instance;
    bit<8> egress_instance;
    bit<32> ingress_length;  // bytes
    bit<32> egress_length;   // bytes
    bit<16> rid;
    bit<16> mcast_grp;
    bit<8> steps;            // one bit per statement reached
}

header filler_t {
    bit<64> value;
}

struct headers_t {
    request_t request;
    result_t result;
    filler_t filler;
}

struct metadata_t { }

parser IntrinsicParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition select(hdr.request.operation) {
            operation_t.SHRINK: parse_filler;
            default: accept;
        }
    }

    state parse_filler {
        packet.extract(hdr.filler);
        transition accept;
    }
}

control IntrinsicVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control IntrinsicIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action leave() {
        hdr.result.steps = hdr.result.steps | 0x02;
        exit;
    }

    action choose(port_t port) {
        standard_metadata.egress_spec = port;
        hdr.result.ingress_spec = port;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            mark_to_drop(standard_metadata);
            exit;
        }
        hdr.result.setValid();
        hdr.result._pad0 = 0;
        hdr.result.ingress_port = standard_metadata.ingress_port;
        hdr.result._pad1 = 0;
        hdr.result._pad2 = 0;
        hdr.result.egress_port = 0;
        hdr.result._pad3 = 0;
        hdr.result.egress_spec = 0;
        hdr.result.ingress_instance = (bit<8>)standard_metadata.instance_type;
        hdr.result.egress_instance = 0xff;
        hdr.result.ingress_length = standard_metadata.packet_length;
        hdr.result.egress_length = 0;
        hdr.result.rid = 0;
        hdr.result.mcast_grp = standard_metadata.mcast_grp;
        hdr.result.steps = 0x01;
        choose((port_t)hdr.request.port);

        if (hdr.request.operation == operation_t.DROP_INGRESS) {
            mark_to_drop(standard_metadata);
        } else if (hdr.request.operation == operation_t.DROP_TAKEN_BACK) {
            mark_to_drop(standard_metadata);
            hdr.result.mcast_grp = standard_metadata.mcast_grp;
            choose((port_t)hdr.request.other_port);
        } else if (hdr.request.operation == operation_t.DROP_PORT_BY_HAND) {
            choose(DROP_PORT);
        } else if (hdr.request.operation == operation_t.EXIT_INGRESS) {
            exit;
        } else if (hdr.request.operation == operation_t.RETURN_INGRESS) {
            return;
        } else if (hdr.request.operation == operation_t.EXIT_IN_ACTION) {
            leave();
        } else if (hdr.request.operation == operation_t.SHRINK) {
            hdr.filler.setInvalid();
        } else if (hdr.request.operation == operation_t.GROW) {
            hdr.filler.setValid();
            hdr.filler.value = 0x0123456789abcdef;
        }
        hdr.result.steps = hdr.result.steps | 0x04;
        if (hdr.request.operation == operation_t.EXIT_INGRESS || hdr.request.operation == operation_t.RETURN_INGRESS) {
            choose((port_t)hdr.request.other_port);
        }
    }
}

control IntrinsicEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.result.steps = hdr.result.steps | 0x10;
        hdr.result.egress_port = standard_metadata.egress_port;
        hdr.result.egress_spec = standard_metadata.egress_spec;
        hdr.result.egress_instance = (bit<8>)standard_metadata.instance_type;
        hdr.result.egress_length = standard_metadata.packet_length;
        hdr.result.rid = standard_metadata.egress_rid;
        if (hdr.request.operation == operation_t.DROP_EGRESS) {
            mark_to_drop(standard_metadata);
        } else if (hdr.request.operation == operation_t.EXIT_EGRESS) {
            exit;
        } else if (hdr.request.operation == operation_t.CHANGE_SPEC_EGRESS) {
            standard_metadata.egress_spec = (port_t)hdr.request.other_port;
        } else if (hdr.request.operation == operation_t.DROP_THEN_EXIT_EGRESS) {
            mark_to_drop(standard_metadata);
            exit;
        }
        hdr.result.steps = hdr.result.steps | 0x20;
    }
}

control IntrinsicComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control IntrinsicDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
        packet.emit(hdr.result);
        packet.emit(hdr.filler);
    }
}

V1Switch(IntrinsicParser(), IntrinsicVerifyChecksum(), IntrinsicIngress(), IntrinsicEgress(),
         IntrinsicComputeChecksum(), IntrinsicDeparser()) main;
