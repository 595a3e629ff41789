/* Headers as values: stacks pushed and popped past their edges, indexed by a field, copied, compared; unions switched from
 * one member to another; validity set, cleared and read; structs assigned whole.
 * The packet comes back to its port; `report` says what was seen, the rest of the packet what was done. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

enum bit<8> operation_t {
    NONE = 0,
    PUSH_1 = 1,
    PUSH_2 = 2,
    PUSH_ALL = 3,
    POP_1 = 4,
    POP_2 = 5,
    POP_ALL = 6,
    COPY_ELEMENT = 7,
    SWAP = 8,
    INVALIDATE = 9,
    COMPARE = 10,
    UNION_TO_LARGE = 11,
    UNION_TO_SMALL = 12,
    STRUCT_COPY = 13,
    COPY_INVALID = 14,
    WRITE_INDEX = 15,
    READ_INDEX = 16
}

header request_t {
    operation_t operation;
    bit<8> elements; // of the stack, 0 to 5
    bit<8> index;    // of an element
    bit<8> value;
}

header element_t {
    bit<8> first;
    bit<16> second;
}

header pair_t {
    bit<8> left;
    bit<8> right;
}

header small_t {
    bit<8> value;
}

header large_t {
    bit<24> value;
}

header_union either_t {
    small_t small;
    large_t large;
}

header report_t {
    bit<8> valid;  // one bit per stack element, element 0 in bit 0
    bit<8> flags;
    bit<16> value;
}

struct headers_t {
    request_t request;
    report_t report;
    element_t[5] stack;
    pair_t pair;
    pair_t other;
    either_t either;
}

struct inner_t {
    bit<8> narrow;
    bit<16> wide;
}

struct metadata_t {
    bit<8> remaining;
    inner_t one;
    inner_t two;
}

parser HeadersParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        meta.one = { 0, 0 };
        meta.two = { 0, 0 };
        packet.extract(hdr.request);
        meta.remaining = hdr.request.elements;
        transition select(meta.remaining) {
            0: parse_tail;
            default: parse_element;
        }
    }

    state parse_element {
        packet.extract(hdr.stack.next);
        meta.remaining = meta.remaining - 1;
        transition select(meta.remaining) {
            0: parse_tail;
            default: parse_element;
        }
    }

    state parse_tail {
        packet.extract(hdr.pair);
        packet.extract(hdr.either.small);
        transition accept;
    }
}

control HeadersVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control HeadersIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action push_1() { hdr.stack.push_front(1); }
    action push_2() { hdr.stack.push_front(2); }
    action push_all() { hdr.stack.push_front(7); }
    action pop_1() { hdr.stack.pop_front(1); }
    action pop_2() { hdr.stack.pop_front(2); }
    action pop_all() { hdr.stack.pop_front(7); }

    action fill_0() {
        hdr.stack[0].setValid();
        hdr.stack[0].first = hdr.request.value;
        hdr.stack[0].second = 0x1234;
    }

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        hdr.report.setValid();
        hdr.report.valid = 0;
        hdr.report.flags = 0;
        hdr.report.value = 0;
        if (standard_metadata.parser_error != error.NoError || !hdr.pair.isValid()) {
            hdr.report.flags = 0xff;
            return;
        }

        switch (hdr.request.operation) {
            operation_t.PUSH_1: {
                push_1();
                fill_0();
            }
            operation_t.PUSH_2: {
                push_2();
                fill_0();
                hdr.stack[1] = hdr.stack[0];
            }
            operation_t.PUSH_ALL: {
                push_all();
                fill_0();
            }
            operation_t.POP_1: { pop_1(); }
            operation_t.POP_2: { pop_2(); }
            operation_t.POP_ALL: { pop_all(); }
            operation_t.COPY_ELEMENT: { hdr.stack[4] = hdr.stack[0]; }
            operation_t.SWAP: {
                element_t saved = hdr.stack[0];
                hdr.stack[0] = hdr.stack[1];
                hdr.stack[1] = saved;
            }
            operation_t.INVALIDATE: {
                hdr.stack[1].setInvalid();
                hdr.pair.setInvalid();
            }
            operation_t.COMPARE: {
                hdr.other.setValid();
                hdr.other.left = hdr.request.value;
                hdr.other.right = hdr.request.index;
                if (hdr.other == hdr.pair) {
                    hdr.report.flags = 1;
                } else {
                    hdr.report.flags = 2;
                }
                hdr.other.setInvalid();
                if (hdr.other == hdr.pair) {
                    hdr.report.flags = hdr.report.flags | 4;
                }
            }
            operation_t.UNION_TO_LARGE: {
                hdr.either.large.setValid();
                hdr.either.large.value = 0x616263;
            }
            operation_t.UNION_TO_SMALL: {
                hdr.either.large.setValid();
                hdr.either.small.setValid();
                hdr.either.small.value = hdr.request.value;
            }
            operation_t.STRUCT_COPY: {
                meta.one = { hdr.request.value, hdr.pair.left ++ hdr.pair.right };
                meta.two = meta.one;
                meta.one.wide = 0;
                hdr.report.flags = meta.two.narrow;
                hdr.report.value = meta.two.wide;
            }
            operation_t.COPY_INVALID: { hdr.pair = hdr.other; }
            operation_t.WRITE_INDEX: {
                if (hdr.request.index < 5 && hdr.request.index < hdr.request.elements) {
                    hdr.stack[hdr.request.index].first = hdr.request.value;
                }
            }
            operation_t.READ_INDEX: {
                if (hdr.request.index < 5 && hdr.request.index < hdr.request.elements) {
                    hdr.report.value = hdr.stack[hdr.request.index].second;
                }
            }
            default: { hdr.report.flags = 0x80; }
        }

        if (hdr.stack[0].isValid()) {
            hdr.report.valid = hdr.report.valid | 1;
        }
        if (hdr.stack[1].isValid()) {
            hdr.report.valid = hdr.report.valid | 2;
        }
        if (hdr.stack[2].isValid()) {
            hdr.report.valid = hdr.report.valid | 4;
        }
        if (hdr.stack[3].isValid()) {
            hdr.report.valid = hdr.report.valid | 8;
        }
        if (hdr.stack[4].isValid()) {
            hdr.report.valid = hdr.report.valid | 16;
        }
        if (hdr.either.isValid()) {
            hdr.report.valid = hdr.report.valid | 32;
        }
        if (hdr.either.small.isValid()) {
            hdr.report.valid = hdr.report.valid | 64;
        }
    }
}

control HeadersEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control HeadersComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control HeadersDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report);
        packet.emit(hdr.request);
        packet.emit(hdr.stack);
        packet.emit(hdr.pair);
        packet.emit(hdr.either);
    }
}

V1Switch(HeadersParser(), HeadersVerifyChecksum(), HeadersIngress(), HeadersEgress(), HeadersComputeChecksum(),
         HeadersDeparser()) main;
