/* Tables that are born with entries which the controller may change, with priorities given or counted.
 * Apart from the other programs because BMv2's P4Runtime server cannot read such tables back. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

header request_t {
    bit<8> key;
    bit<8> value;
}

struct headers_t {
    request_t request;
}

struct metadata_t { }

parser InitialParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control InitialVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control InitialIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action set(bit<8> value) { hdr.request.value = value; }
    action add(bit<8> value) { hdr.request.value = hdr.request.value + value; }

    table by_priority {
        key = { hdr.request.key: ternary; }
        actions = { set; add; NoAction; }
        default_action = NoAction();
        size = 64;
        entries = {
            priority = 20: 0x12: set(2);
            const priority = 10: 0x10 &&& 0xf0: set(1);
            priority = 5: 0x00 &&& 0x00: set(3);
        }
    }

    table exactly {
        key = { hdr.request.key: exact; }
        actions = { set; add; NoAction; }
        default_action = NoAction();
        size = 64;
        entries = {
            0x12: add(16);
            0x34: add(32);
        }
    }

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        if (hdr.request.isValid()) {
            by_priority.apply();
            exactly.apply();
        }
    }
}

control InitialEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control InitialComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control InitialDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
    }
}

V1Switch(InitialParser(), InitialVerifyChecksum(), InitialIngress(), InitialEgress(), InitialComputeChecksum(),
         InitialDeparser()) main;
