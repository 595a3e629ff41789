/* Tables whose entries tell the controller that no packet has hit them for a while.
 * The packet comes back to its port with the values of the entries and the port in front. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>
#include "include/ethernet.p4"

header result_t {
    bit<8> flow;
    bit<8> prefix;
    bit<7> _pad;
    port_t port;
}

struct headers_t {
    result_t result;
    ethernet_t ethernet;
}

struct metadata_t { }

parser IdleParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control IdleVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control IdleIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action set_flow(bit<8> value) { hdr.result.flow = value; }
    action set_prefix(bit<8> value) { hdr.result.prefix = value; }

    table flow {
        key = { hdr.ethernet.src_addr: exact; }
        actions = { set_flow; NoAction; }
        default_action = NoAction();
        support_timeout = true;
        size = 128;
    }

    table prefix {
        key = { hdr.ethernet.dst_addr: ternary; }
        actions = { set_prefix; NoAction; }
        default_action = NoAction();
        support_timeout = true;
        size = 128;
    }

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        if (hdr.ethernet.isValid()) {
            hdr.result.setValid();
            hdr.result.flow = 0;
            hdr.result.prefix = 0;
            hdr.result._pad = 0;
            hdr.result.port = standard_metadata.ingress_port;
            flow.apply();
            prefix.apply();
        }
    }
}

control IdleEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control IdleComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control IdleDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.result);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(IdleParser(), IdleVerifyChecksum(), IdleIngress(), IdleEgress(), IdleComputeChecksum(), IdleDeparser()) main;
