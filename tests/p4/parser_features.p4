/* What a parser can do: select with masks and ranges, value sets, lookahead, advance, header stacks that can overflow,
 * variable-length fields, header unions, verify, and every parser error on the way.
 * The packet comes back to its port with a report in front: the error, and what was extracted. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

error {
    BadVersion,
    BadLength
}

/* Reported instead of the error itself, whose numbers the compiler chooses. */
enum bit<8> error_code_t {
    NO_ERROR = 0,
    PACKET_TOO_SHORT = 1,
    NO_MATCH = 2,
    STACK_OUT_OF_BOUNDS = 3,
    HEADER_TOO_SHORT = 4,
    BAD_VERSION = 5,
    BAD_LENGTH = 6,
    OTHER = 255
}

header report_t {
    error_code_t error_code;
    bit<8> labels;   // how many stack elements are valid
    bit<8> kind;     // the last kind looked at
    bit<8> path;     // one bit per parser state that was passed, see below
    bit<32> peeked;  // what lookahead saw
}

const bit<8> PATH_LABELS = 0x01;
const bit<8> PATH_OPTIONS = 0x02;
const bit<8> PATH_UNION = 0x04;
const bit<8> PATH_PEEK = 0x08;
const bit<8> PATH_SKIP = 0x10;
const bit<8> PATH_KNOWN = 0x20;
const bit<8> PATH_RANGE = 0x40;
const bit<8> PATH_TLV = 0x80;

header base_t {
    bit<4> version; // 1
    bit<4> flags;
    bit<8> kind;
}

header label_t {
    bit<7> value;
    bit<1> bottom;
}

header options_t {
    bit<8> length; // bytes of data
    varbit<128> data;
}

header small_t {
    bit<8> tag;    // 0 to 127
    bit<8> value;
}

header large_t {
    bit<8> tag;    // 128 to 255
    bit<24> value;
}

header_union item_t {
    small_t small;
    large_t large;
}

struct headers_t {
    report_t report;
    base_t base;
    label_t[4] labels;
    options_t options;
    item_t item;
    item_t[3] items;
}

struct metadata_t {
    bit<8> kind;
    bit<8> path;
    bit<32> peeked;
}

parser FeatureParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    value_set<bit<8>>(4) known_kinds;

    state start {
        meta.kind = 0;
        meta.path = 0;
        meta.peeked = 0;
        packet.extract(hdr.base);
        verify(hdr.base.version == 1, error.BadVersion);
        meta.kind = hdr.base.kind;
        transition select(hdr.base.kind) {
            known_kinds: parse_known;
            0: accept;
            1: parse_label;
            2: parse_options;
            3: parse_item;
            4: parse_peek;
            5: parse_skip;
            6: parse_items;
            16..31: parse_range;
            0x40 &&& 0xf0: parse_masked;
            // no default: anything else is NoMatch
        }
    }

    state parse_known {
        meta.path = meta.path | PATH_KNOWN;
        transition accept;
    }

    /* Up to the label whose bottom bit is set; the fifth label is one too many. */
    state parse_label {
        meta.path = meta.path | PATH_LABELS;
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom) {
            0: parse_label;
            default: accept;
        }
    }

    /* More than 16 bytes of data do not fit: HeaderTooShort. */
    state parse_options {
        meta.path = meta.path | PATH_OPTIONS;
        packet.extract(hdr.options, (bit<32>)packet.lookahead<bit<8>>() * 8);
        verify(hdr.options.length != 7, error.BadLength);
        transition select(hdr.base.flags) {
            1 &&& 1: parse_label;
            default: accept;
        }
    }

    state parse_item {
        meta.path = meta.path | PATH_UNION;
        transition select(packet.lookahead<bit<1>>()) {
            0: parse_small;
            1: parse_large;
        }
    }

    state parse_small {
        packet.extract(hdr.item.small);
        transition accept;
    }

    state parse_large {
        packet.extract(hdr.item.large);
        transition accept;
    }

    /* Looks four bytes ahead, and may look past the end of the packet. */
    state parse_peek {
        meta.path = meta.path | PATH_PEEK;
        meta.peeked = packet.lookahead<bit<32>>();
        transition select(meta.peeked[15:0], hdr.base.flags) {
            (0x0000 &&& 0xff00, _): parse_label;
            (_, 2..5): parse_item;
            (_, _): accept;
        }
    }

    /* Skips three bytes, and may skip past the end of the packet. */
    state parse_skip {
        meta.path = meta.path | PATH_SKIP;
        packet.advance(24);
        transition parse_label;
    }

    /* A list of at most three items of either size, ended by tag 0. */
    state parse_items {
        meta.path = meta.path | PATH_TLV;
        transition select(packet.lookahead<bit<8>>()) {
            0: accept;
            0x80 &&& 0x80: parse_items_large;
            default: parse_items_small;
        }
    }

    state parse_items_small {
        packet.extract(hdr.items.next.small);
        transition parse_items;
    }

    state parse_items_large {
        packet.extract(hdr.items.next.large);
        transition parse_items;
    }

    state parse_range {
        meta.path = meta.path | PATH_RANGE;
        transition accept;
    }

    state parse_masked {
        meta.path = meta.path | PATH_RANGE | PATH_KNOWN;
        transition reject;
    }
}

control FeatureVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FeatureIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        hdr.report.setValid();
        hdr.report.kind = meta.kind;
        hdr.report.path = meta.path;
        hdr.report.peeked = meta.peeked;

        hdr.report.labels = 0;
        if (hdr.labels[0].isValid()) {
            hdr.report.labels = hdr.report.labels + 1;
        }
        if (hdr.labels[1].isValid()) {
            hdr.report.labels = hdr.report.labels + 1;
        }
        if (hdr.labels[2].isValid()) {
            hdr.report.labels = hdr.report.labels + 1;
        }
        if (hdr.labels[3].isValid()) {
            hdr.report.labels = hdr.report.labels + 1;
        }

        if (standard_metadata.parser_error == error.NoError) {
            hdr.report.error_code = error_code_t.NO_ERROR;
        } else if (standard_metadata.parser_error == error.PacketTooShort) {
            hdr.report.error_code = error_code_t.PACKET_TOO_SHORT;
        } else if (standard_metadata.parser_error == error.NoMatch) {
            hdr.report.error_code = error_code_t.NO_MATCH;
        } else if (standard_metadata.parser_error == error.StackOutOfBounds) {
            hdr.report.error_code = error_code_t.STACK_OUT_OF_BOUNDS;
        } else if (standard_metadata.parser_error == error.HeaderTooShort) {
            hdr.report.error_code = error_code_t.HEADER_TOO_SHORT;
        } else if (standard_metadata.parser_error == error.BadVersion) {
            hdr.report.error_code = error_code_t.BAD_VERSION;
        } else if (standard_metadata.parser_error == error.BadLength) {
            hdr.report.error_code = error_code_t.BAD_LENGTH;
        } else {
            hdr.report.error_code = error_code_t.OTHER;
        }
    }
}

control FeatureEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control FeatureComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FeatureDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report);
        packet.emit(hdr.base);
        packet.emit(hdr.labels);
        packet.emit(hdr.options);
        packet.emit(hdr.item);
        packet.emit(hdr.items);
    }
}

V1Switch(FeatureParser(), FeatureVerifyChecksum(), FeatureIngress(), FeatureEgress(), FeatureComputeChecksum(),
         FeatureDeparser()) main;
