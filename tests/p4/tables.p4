/* Every kind of match, alone and mixed; constant entries; priorities; default actions; hit, miss and action_run.
 * The packet comes back to its port; `result` has the value that each table chose. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

header request_t {
    bit<8> tag; // 1: `extra` follows
    bit<1> flag;
    bit<7> narrow;
    bit<16> word;
    bit<32> address;
    bit<48> mac;
    bit<128> wide;
}

header extra_t {
    bit<8> value;
}

header result_t {
    bit<16> exact_value;
    bit<16> lpm_value;
    bit<16> ternary_value;
    bit<16> range_value;
    bit<16> optional_value;
    bit<16> mixed_value;
    bit<16> wide_value;
    bit<16> const_value;
    bit<16> validity_value;
    bit<16> keyless_value;
    bit<8> hits;   // one bit per table
    bit<8> ran;  // which action `mixed` ran
}

struct headers_t {
    result_t result;
    request_t request;
    extra_t extra;
}

struct metadata_t { }

parser TablesParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition select(hdr.request.tag) {
            1: parse_extra;
            default: accept;
        }
    }

    state parse_extra {
        packet.extract(hdr.extra);
        transition accept;
    }
}

control TablesVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TablesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action set_exact(bit<16> value) { hdr.result.exact_value = value; }
    action set_lpm(bit<16> value) { hdr.result.lpm_value = value; }
    action set_ternary(bit<16> value) { hdr.result.ternary_value = value; }
    action set_range(bit<16> value) { hdr.result.range_value = value; }
    action set_optional(bit<16> value) { hdr.result.optional_value = value; }
    action set_mixed(bit<16> value) { hdr.result.mixed_value = value; }
    action add_mixed(bit<8> first, bit<8> second) { hdr.result.mixed_value = first ++ second; }
    action set_wide(bit<16> value) { hdr.result.wide_value = value; }
    action set_const(bit<16> value) { hdr.result.const_value = value; }
    action set_validity(bit<16> value) { hdr.result.validity_value = value; }
    action set_keyless(bit<16> value) { hdr.result.keyless_value = value; }
    action drop() { mark_to_drop(standard_metadata); }

    table exact_match {
        key = {
            hdr.request.narrow: exact;
            hdr.request.word: exact;
        }
        actions = { set_exact; drop; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    table lpm_match {
        key = {
            hdr.request.flag: exact;
            hdr.request.address: lpm;
        }
        actions = { set_lpm; drop; NoAction; }
        default_action = set_lpm(0xffff);
        size = 64;
    }

    table ternary_match {
        key = {
            hdr.request.word: ternary;
            hdr.request.address: ternary;
            hdr.request.narrow: ternary;
        }
        actions = { set_ternary; drop; NoAction; }
        const default_action = NoAction();
        size = 64;
    }

    table range_match {
        key = {
            hdr.request.word: range;
            hdr.request.narrow: range;
        }
        actions = { set_range; drop; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    table optional_match {
        key = {
            hdr.request.mac: optional;
            hdr.request.narrow: optional;
        }
        actions = { set_optional; drop; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    table mixed {
        key = {
            hdr.request.flag: exact;
            hdr.request.address: lpm;
            hdr.request.mac: ternary;
            hdr.request.word: range;
            hdr.request.narrow: optional;
        }
        actions = { set_mixed; add_mixed; drop; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    table wide_match {
        key = {
            hdr.request.wide: ternary;
            hdr.request.wide[127:64]: exact @name("wide_high");
        }
        actions = { set_wide; drop; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    /* Entries overlap: the earlier one wins. */
    table const_entries {
        key = {
            hdr.request.word: ternary;
            hdr.request.narrow: ternary;
        }
        actions = { set_const; NoAction; }
        const default_action = set_const(9);
        const entries = {
            (0x0a00 &&& 0xff00, _): set_const(1);
            (0x0a0b, 0x10 &&& 0x70): set_const(2);
            (0x0000 &&& 0xf000, 0x01 &&& 0x01): set_const(3);
            (_, 0x7f): set_const(4);
        }
    }

    table validity {
        key = {
            hdr.extra.isValid(): exact @name("extra_valid");
            hdr.request.flag: ternary;
        }
        actions = { set_validity; NoAction; }
        default_action = NoAction();
        const entries = {
            (true, 1): set_validity(1);
            (true, _): set_validity(2);
            (false, 1): set_validity(3);
        }
    }

    table keyless {
        actions = { set_keyless; NoAction; }
        default_action = set_keyless(5);
    }

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        if (!hdr.request.isValid()) {
            return;
        }
        hdr.result.setValid();
        hdr.result.exact_value = 0;
        hdr.result.lpm_value = 0;
        hdr.result.ternary_value = 0;
        hdr.result.range_value = 0;
        hdr.result.optional_value = 0;
        hdr.result.mixed_value = 0;
        hdr.result.wide_value = 0;
        hdr.result.const_value = 0;
        hdr.result.validity_value = 0;
        hdr.result.keyless_value = 0;
        hdr.result.hits = 0;
        hdr.result.ran = 0;

        if (exact_match.apply().hit) {
            hdr.result.hits = hdr.result.hits | 0x01;
        }
        if (lpm_match.apply().hit) {
            hdr.result.hits = hdr.result.hits | 0x02;
        }
        if (ternary_match.apply().miss) {
            hdr.result.hits = hdr.result.hits | 0x04;
        }
        if (range_match.apply().hit) {
            hdr.result.hits = hdr.result.hits | 0x08;
        } else {
            hdr.result.range_value = 0x5555;
        }
        if (optional_match.apply().hit) {
            hdr.result.hits = hdr.result.hits | 0x10;
        }
        switch (mixed.apply().action_run) {
            set_mixed: { hdr.result.ran = 1; }
            add_mixed: { hdr.result.ran = 2; }
            drop: { hdr.result.ran = 3; }
            default: { hdr.result.ran = 4; }
        }
        if (wide_match.apply().hit) {
            hdr.result.hits = hdr.result.hits | 0x20;
        }
        if (const_entries.apply().hit) {
            hdr.result.hits = hdr.result.hits | 0x40;
        }
        if (validity.apply().hit) {
            hdr.result.hits = hdr.result.hits | 0x80;
        }
        keyless.apply();
    }
}

control TablesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control TablesComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TablesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.result);
        packet.emit(hdr.request);
        packet.emit(hdr.extra);
    }
}

V1Switch(TablesParser(), TablesVerifyChecksum(), TablesIngress(), TablesEgress(), TablesComputeChecksum(),
         TablesDeparser()) main;
