/* Digests to the controller: two messages, with fields that are not whole bytes and with wide ones.
 * The packet comes back to its port. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>
#include "include/ethernet.p4"

header request_t {
    bit<1> learn;
    bit<1> report; // instead of learn
    bit<6> _pad;
}

struct learn_t {
    mac_addr_t src_addr;
    port_t port;
}

struct report_t {
    bit<1> is_broadcast;
    bit<128> wide;
    ether_type_t ether_type;
    bit<3> three;
}

header wide_t {
    bit<128> value;
}

struct headers_t {
    request_t request;
    ethernet_t ethernet;
    wide_t wide;
}

struct metadata_t { }

parser DigestsParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.wide);
        transition accept;
    }
}

control DigestsVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control DigestsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<1> is_broadcast = 0;

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        if (standard_metadata.parser_error != error.NoError) {
            mark_to_drop(standard_metadata);
            return;
        }
        if (hdr.request.report == 1) {
            if (hdr.ethernet.dst_addr == 0xffffffffffff) {
                is_broadcast = 1;
            }
            digest<report_t>(1, { is_broadcast, hdr.wide.value, hdr.ethernet.ether_type, hdr.wide.value[2:0] });
        } else if (hdr.request.learn == 1) {
            digest<learn_t>(1, { hdr.ethernet.src_addr, standard_metadata.ingress_port });
        }
    }
}

control DigestsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control DigestsComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control DigestsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.wide);
    }
}

V1Switch(DigestsParser(), DigestsVerifyChecksum(), DigestsIngress(), DigestsEgress(), DigestsComputeChecksum(),
         DigestsDeparser()) main;
