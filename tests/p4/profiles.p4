/* Action profiles and selectors: two tables share one profile; a selector spreads flows over weighted members.
 * The packet comes back to its port, or to where a member sends it; `result` has what the members wrote. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>
#include "include/ethernet.p4"

header request_t {
    bit<8> profile_key;
    bit<8> ternary_key;
    bit<8> selector_key;
    bit<32> src_addr;  // the flow
    bit<32> dst_addr;
    bit<16> src_port;
    bit<4> class;
    bit<4> _pad;
}

header result_t {
    bit<16> exact_value;
    bit<16> ternary_value;
    bit<16> selected_value;
    bit<16> spread_value;
    bit<8> hits;
    bit<8> ran; // which action the selector ran
}

struct headers_t {
    result_t result;
    request_t request;
}

struct metadata_t { }

parser ProfilesParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control ProfilesVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ProfilesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action_profile(32) shared_profile;
    action_selector(HashAlgorithm.crc16, 64, 16) flow_selector;
    action_selector(HashAlgorithm.crc32, 32, 10) spread_selector;

    action set_first(bit<16> value) { hdr.result.exact_value = value; }
    action set_second(bit<16> value) { hdr.result.ternary_value = value; }
    action set_selected(bit<16> value) { hdr.result.selected_value = value; }
    action select_port(port_t port) { standard_metadata.egress_spec = port; }
    action set_spread(bit<16> value) { hdr.result.spread_value = value; }
    action drop() { mark_to_drop(standard_metadata); }

    table exact_profile {
        key = { hdr.request.profile_key: exact; }
        actions = { set_first; set_second; drop; NoAction; }
        default_action = NoAction();
        implementation = shared_profile;
        size = 64;
    }

    table ternary_profile {
        key = { hdr.request.ternary_key: ternary; }
        actions = { set_first; set_second; drop; NoAction; }
        default_action = NoAction();
        implementation = shared_profile;
        size = 64;
    }

    table selected {
        key = {
            hdr.request.selector_key: exact;
            hdr.request.src_addr: selector;
            hdr.request.dst_addr: selector;
            hdr.request.src_port: selector;
        }
        actions = { set_selected; select_port; drop; NoAction; }
        default_action = NoAction();
        implementation = flow_selector;
        size = 64;
    }

    /* Selector fields that are not whole bytes. */
    table spread {
        key = {
            hdr.request.selector_key: lpm;
            hdr.request.class: selector;
            hdr.request.src_port[10:0]: selector;
        }
        actions = { set_spread; NoAction; }
        default_action = NoAction();
        implementation = spread_selector;
        size = 64;
    }

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        if (!hdr.request.isValid()) {
            return;
        }
        hdr.result.setValid();
        hdr.result.exact_value = 0;
        hdr.result.ternary_value = 0;
        hdr.result.selected_value = 0;
        hdr.result.spread_value = 0;
        hdr.result.hits = 0;
        hdr.result.ran = 0;
        if (exact_profile.apply().hit) {
            hdr.result.hits = hdr.result.hits | 1;
        }
        if (ternary_profile.apply().hit) {
            hdr.result.hits = hdr.result.hits | 2;
        }
        switch (selected.apply().action_run) {
            set_selected: { hdr.result.ran = 1; }
            select_port: { hdr.result.ran = 2; }
            drop: { hdr.result.ran = 3; }
            default: { hdr.result.ran = 4; }
        }
        if (spread.apply().hit) {
            hdr.result.hits = hdr.result.hits | 4;
        }
    }
}

control ProfilesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control ProfilesComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ProfilesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.result);
        packet.emit(hdr.request);
    }
}

V1Switch(ProfilesParser(), ProfilesVerifyChecksum(), ProfilesIngress(), ProfilesEgress(), ProfilesComputeChecksum(),
         ProfilesDeparser()) main;
