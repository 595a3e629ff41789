/* The functions of v1model that no other program uses: random, log_msg, assert and assume.
 * The packet comes back to its port; `result` has what can be said of the random numbers without knowing them. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

header request_t {
    bit<16> low;
    bit<16> span;
}

header result_t {
    bit<16> fixed;    // random between two equal ends
    bit<8> in_range;  // random between low and low + span, saturating
    bit<8> coin;      // 0 or 1, another in every packet
}

struct headers_t {
    result_t result;
    request_t request;
}

struct metadata_t { }

parser ExternsParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control ExternsVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ExternsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<16> drawn = 0;
    bit<16> high = 0;

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        if (!hdr.request.isValid()) {
            return;
        }
        high = hdr.request.low |+| hdr.request.span;
        assert(high >= hdr.request.low);
        assume(standard_metadata.ingress_port != 511);
        log_msg("a packet on port {} asks for {} to {}", { standard_metadata.ingress_port, hdr.request.low, high });
        log_msg("no arguments");
        hdr.result.setValid();
        hdr.result.in_range = 0;
        hdr.result.coin = 0;
        random(hdr.result.fixed, hdr.request.low, hdr.request.low);
        random(drawn, hdr.request.low, high);
        if (drawn >= hdr.request.low && drawn <= high) {
            hdr.result.in_range = 1;
        }
        if (hdr.request.span == 0xffff) {
            random(hdr.result.coin, 0, 1);
        }
    }
}

control ExternsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control ExternsComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ExternsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.result);
        packet.emit(hdr.request);
    }
}

V1Switch(ExternsParser(), ExternsVerifyChecksum(), ExternsIngress(), ExternsEgress(), ExternsComputeChecksum(),
         ExternsDeparser()) main;
