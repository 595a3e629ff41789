/* Every operator of the language, at widths from 1 to 256 bits, signed and unsigned.
 * The first byte chooses the operation; the operands follow; the results are written over the result fields. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

enum bit<8> operation_t {
    ARITHMETIC = 0,
    SATURATING = 1,
    BITWISE = 2,
    SHIFT = 3,
    COMPARE = 4,
    SIGNED = 5,
    SLICE = 6,
    CONCAT = 7,
    CAST = 8,
    CONDITIONAL = 9,
    WIDE_ARITHMETIC = 0x80,
    WIDE_BITWISE = 0x81,
    WIDE_SHIFT = 0x82,
    WIDE_COMPARE = 0x83,
    WIDE_SLICE = 0x84,
    WIDE_CAST = 0x85,
    HUGE_ARITHMETIC = 0x86,
    HUGE_BITWISE = 0x87,
    HUGE_SHIFT = 0x88,
    HUGE_COMPARE = 0x89,
    HUGE_SLICE = 0x8a
}

header request_t {
    operation_t operation;
}

/* Operations 0x00 to 0x7f. */
header narrow_t {
    bit<8> a8;
    bit<8> b8;
    bit<3> a3;
    bit<13> a13;
    bit<32> a32;
    bit<32> b32;
    bit<48> a48;
    bit<64> a64;
    bit<64> b64;
    int<8> s8;
    int<8> t8;
    int<32> s32;
    int<32> t32;
}

header narrow_result_t {
    bit<8> r8;
    bit<8> q8;
    bit<3> r3;
    bit<13> r13;
    bit<32> r32;
    bit<32> q32;
    bit<48> r48;
    bit<64> r64;
    int<8> u8;
    int<8> v8;
    int<32> u32;
    bit<16> truth; // one bit per comparison
}

/* Operations 0x80 to 0xff. */
header wide_t {
    bit<128> a128;
    bit<128> b128;
    bit<72> a72;
    bit<256> a256;
    bit<256> b256;
    bit<8> amount;
}

header wide_result_t {
    bit<128> r128;
    bit<128> q128;
    bit<72> r72;
    bit<256> r256;
    bit<16> truth;
}

struct headers_t {
    request_t request;
    narrow_t n;
    narrow_result_t nr;
    wide_t w;
    wide_result_t wr;
}

struct metadata_t { }

parser ExpressionParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition select((bit<8>)hdr.request.operation) {
            0x80 &&& 0x80: parse_wide;
            default: parse_narrow;
        }
    }

    state parse_narrow {
        packet.extract(hdr.n);
        transition accept;
    }

    state parse_wide {
        packet.extract(hdr.w);
        transition accept;
    }
}

control ExpressionVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Narrow(inout headers_t hdr) {
    action arithmetic() {
        hdr.nr.r8 = hdr.n.a8 + hdr.n.b8;
        hdr.nr.q8 = hdr.n.a8 - hdr.n.b8;
        hdr.nr.r3 = hdr.n.a3 + 7;
        hdr.nr.r13 = hdr.n.a13 * 5;
        hdr.nr.r32 = hdr.n.a32 * hdr.n.b32;
        hdr.nr.q32 = -hdr.n.a32;
        hdr.nr.r48 = hdr.n.a48 - 1;
        hdr.nr.r64 = hdr.n.a64 * hdr.n.b64 + 3;
    }

    action saturating() {
        hdr.nr.r8 = hdr.n.a8 |+| hdr.n.b8;
        hdr.nr.q8 = hdr.n.a8 |-| hdr.n.b8;
        hdr.nr.r3 = hdr.n.a3 |+| 3;
        hdr.nr.r13 = hdr.n.a13 |-| 100;
        hdr.nr.r32 = hdr.n.a32 |+| hdr.n.b32;
        hdr.nr.q32 = hdr.n.a32 |-| hdr.n.b32;
        hdr.nr.r48 = hdr.n.a48 |+| 0x800000000000;
        hdr.nr.r64 = hdr.n.a64 |+| hdr.n.b64;
        hdr.nr.u8 = hdr.n.s8 |+| hdr.n.t8;
        hdr.nr.v8 = hdr.n.s8 |-| hdr.n.t8;
        hdr.nr.u32 = hdr.n.s32 |+| hdr.n.t32;
    }

    action bitwise() {
        hdr.nr.r8 = hdr.n.a8 & hdr.n.b8;
        hdr.nr.q8 = ~hdr.n.a8;
        hdr.nr.r3 = ~hdr.n.a3;
        hdr.nr.r13 = hdr.n.a13 ^ 0x1555;
        hdr.nr.r32 = hdr.n.a32 | hdr.n.b32;
        hdr.nr.q32 = hdr.n.a32 ^ ~hdr.n.b32;
        hdr.nr.r48 = ~(hdr.n.a48 & 0xff00ff00ff00);
        hdr.nr.r64 = (hdr.n.a64 & hdr.n.b64) | (~hdr.n.a64 & ~hdr.n.b64);
    }

    /* By a constant, and by a field that may be larger than the operand is wide. */
    action shift() {
        hdr.nr.r8 = hdr.n.a8 << 3;
        hdr.nr.q8 = hdr.n.a8 >> hdr.n.b8;
        hdr.nr.r3 = hdr.n.a3 << 1;
        hdr.nr.r13 = hdr.n.a13 >> 12;
        hdr.nr.r32 = hdr.n.a32 << hdr.n.b8;
        hdr.nr.q32 = hdr.n.a32 >> hdr.n.b8;
        hdr.nr.r48 = hdr.n.a48 << 47;
        hdr.nr.r64 = hdr.n.a64 << hdr.n.b8;
        hdr.nr.u8 = hdr.n.s8 >> 2;
        hdr.nr.v8 = hdr.n.s8 << 2;
        hdr.nr.u32 = hdr.n.s32 >> hdr.n.b8;
    }

    action signed_arithmetic() {
        hdr.nr.u8 = hdr.n.s8 + hdr.n.t8;
        hdr.nr.v8 = -hdr.n.s8;
        hdr.nr.u32 = hdr.n.s32 * hdr.n.t32;
        hdr.nr.r32 = (bit<32>)((int<32>)hdr.n.s8);
        hdr.nr.q32 = (bit<32>)(hdr.n.s32 - hdr.n.t32);
        hdr.nr.r64 = (bit<64>)((int<64>)hdr.n.s32);
        hdr.nr.r8 = (bit<8>)(int<8>)hdr.n.s32;
    }

    action slice() {
        hdr.nr.r8 = hdr.n.a32[27:20];
        hdr.nr.q8 = 0;
        hdr.nr.q8[6:2] = hdr.n.b8[4:0];
        hdr.nr.r3 = hdr.n.a13[12:10];
        hdr.nr.r13 = hdr.n.a64[63:51];
        hdr.nr.r32 = hdr.n.a64[47:16];
        hdr.nr.q32 = hdr.n.a32;
        hdr.nr.q32[15:8] = hdr.n.a8;
        hdr.nr.r48 = hdr.n.a48;
        hdr.nr.r48[47:47] = 1;
        hdr.nr.r64 = 0;
        hdr.nr.r64[40:9] = hdr.n.b32;
    }

    action concat() {
        hdr.nr.r8 = hdr.n.a3 ++ hdr.n.b8[4:0];
        hdr.nr.r13 = hdr.n.b8[4:0] ++ hdr.n.a8;
        hdr.nr.r32 = hdr.n.a8 ++ hdr.n.b8 ++ hdr.n.a3 ++ hdr.n.a13;
        hdr.nr.r48 = hdr.n.a32 ++ hdr.n.b32[31:16];
        hdr.nr.r64 = hdr.n.b32 ++ hdr.n.a32;
    }

    action cast() {
        hdr.nr.r8 = (bit<8>)hdr.n.a13;
        hdr.nr.q8 = (bit<8>)hdr.n.a3;
        hdr.nr.r3 = (bit<3>)hdr.n.a64;
        hdr.nr.r13 = (bit<13>)hdr.n.a8;
        hdr.nr.r32 = (bit<32>)hdr.n.a48;
        hdr.nr.q32 = (bit<32>)(bit<1>)(hdr.n.a8 == hdr.n.b8);
        hdr.nr.r64 = (bit<64>)hdr.n.a48;
        hdr.nr.u8 = (int<8>)hdr.n.a8;
        hdr.nr.u32 = (int<32>)(int<8>)hdr.n.b8;
    }

    action conditional() {
        hdr.nr.r8 = hdr.n.a8 < hdr.n.b8 ? hdr.n.a8 : hdr.n.b8;
        hdr.nr.r32 = hdr.n.a32 > hdr.n.b32 ? (hdr.n.a3 == 0 ? 32w1 : 32w2) : 32w3;
        hdr.nr.u32 = hdr.n.s32 < 0 ? -hdr.n.s32 : hdr.n.s32;
    }

    apply {
        hdr.nr.setValid();
        hdr.nr.r8 = 0;
        hdr.nr.q8 = 0;
        hdr.nr.r3 = 0;
        hdr.nr.r13 = 0;
        hdr.nr.r32 = 0;
        hdr.nr.q32 = 0;
        hdr.nr.r48 = 0;
        hdr.nr.r64 = 0;
        hdr.nr.u8 = 0;
        hdr.nr.v8 = 0;
        hdr.nr.u32 = 0;
        hdr.nr.truth = 0;
        switch (hdr.request.operation) {
            operation_t.ARITHMETIC: { arithmetic(); }
            operation_t.SATURATING: { saturating(); }
            operation_t.BITWISE: { bitwise(); }
            operation_t.SHIFT: { shift(); }
            operation_t.COMPARE: {
                if (hdr.n.a8 == hdr.n.b8) { hdr.nr.truth = hdr.nr.truth | 0x0001; }
                if (hdr.n.a8 != hdr.n.b8) { hdr.nr.truth = hdr.nr.truth | 0x0002; }
                if (hdr.n.a8 < hdr.n.b8) { hdr.nr.truth = hdr.nr.truth | 0x0004; }
                if (hdr.n.a32 <= hdr.n.b32) { hdr.nr.truth = hdr.nr.truth | 0x0008; }
                if (hdr.n.a64 > hdr.n.b64) { hdr.nr.truth = hdr.nr.truth | 0x0010; }
                if (hdr.n.a64 >= hdr.n.b64) { hdr.nr.truth = hdr.nr.truth | 0x0020; }
                if (hdr.n.s8 < hdr.n.t8) { hdr.nr.truth = hdr.nr.truth | 0x0040; }
                if (hdr.n.s32 >= hdr.n.t32) { hdr.nr.truth = hdr.nr.truth | 0x0080; }
                if (hdr.n.s32 < 0 && hdr.n.t32 > 0) { hdr.nr.truth = hdr.nr.truth | 0x0100; }
                if (hdr.n.a3 == 0 || !(hdr.n.a13 == 0)) { hdr.nr.truth = hdr.nr.truth | 0x0200; }
            }
            operation_t.SIGNED: { signed_arithmetic(); }
            operation_t.SLICE: { slice(); }
            operation_t.CONCAT: { concat(); }
            operation_t.CAST: { cast(); }
            operation_t.CONDITIONAL: { conditional(); }
            default: { hdr.nr.truth = 0xffff; }
        }
    }
}

control Wide(inout headers_t hdr) {
    action arithmetic() {
        hdr.wr.r128 = hdr.w.a128 + hdr.w.b128;
        hdr.wr.q128 = hdr.w.a128 * hdr.w.b128;
        hdr.wr.r72 = hdr.w.a72 - 1;
        hdr.wr.r256 = (bit<256>)(hdr.w.a128 |-| hdr.w.b128);
    }

    action bitwise() {
        hdr.wr.r128 = hdr.w.a128 & ~hdr.w.b128;
        hdr.wr.q128 = hdr.w.a128 ^ hdr.w.b128;
        hdr.wr.r72 = hdr.w.a72 | 0x800000000000000001;
    }

    action shift() {
        hdr.wr.r128 = hdr.w.a128 << hdr.w.amount;
        hdr.wr.q128 = hdr.w.a128 >> hdr.w.amount;
        hdr.wr.r72 = hdr.w.a72 << 65;
    }

    action slice() {
        hdr.wr.r128 = hdr.w.a128[63:0] ++ hdr.w.b128[127:64];
        hdr.wr.q128 = hdr.w.a128;
        hdr.wr.q128[99:28] = hdr.w.a72;
        hdr.wr.r72 = hdr.w.a128[100:29];
    }

    action cast() {
        hdr.wr.r128 = (bit<128>)hdr.w.a72;
        hdr.wr.q128 = (bit<128>)hdr.w.a256;
        hdr.wr.r72 = (bit<72>)hdr.w.a128;
        hdr.wr.r256 = (bit<256>)hdr.w.b128;
    }

    action huge_arithmetic() {
        hdr.wr.r256 = hdr.w.a256 + hdr.w.b256;
        hdr.wr.r128 = (bit<128>)(hdr.w.a256 - hdr.w.b256);
        hdr.wr.q128 = (bit<128>)((hdr.w.a256 - hdr.w.b256) >> 128);
    }

    action huge_bitwise() {
        hdr.wr.r256 = (hdr.w.a256 & hdr.w.b256) ^ ~hdr.w.a256;
        hdr.wr.r128 = (bit<128>)(hdr.w.a256 | hdr.w.b256);
    }

    action huge_shift() {
        hdr.wr.r256 = hdr.w.a256 << hdr.w.amount;
        hdr.wr.r128 = (bit<128>)(hdr.w.b256 >> hdr.w.amount);
    }

    action huge_slice() {
        hdr.wr.r128 = hdr.w.a256[200:73];
        hdr.wr.q128 = hdr.w.a256[255:128];
        hdr.wr.r256 = hdr.w.b256;
        hdr.wr.r256[190:63] = hdr.w.a128;
    }

    apply {
        hdr.wr.setValid();
        hdr.wr.r128 = 0;
        hdr.wr.q128 = 0;
        hdr.wr.r72 = 0;
        hdr.wr.r256 = 0;
        hdr.wr.truth = 0;
        switch (hdr.request.operation) {
            operation_t.WIDE_ARITHMETIC: { arithmetic(); }
            operation_t.WIDE_BITWISE: { bitwise(); }
            operation_t.WIDE_SHIFT: { shift(); }
            operation_t.WIDE_COMPARE: {
                if (hdr.w.a128 == hdr.w.b128) { hdr.wr.truth = hdr.wr.truth | 1; }
                if (hdr.w.a128 < hdr.w.b128) { hdr.wr.truth = hdr.wr.truth | 2; }
                if (hdr.w.a128 >= hdr.w.b128) { hdr.wr.truth = hdr.wr.truth | 4; }
            }
            operation_t.WIDE_SLICE: { slice(); }
            operation_t.WIDE_CAST: { cast(); }
            operation_t.HUGE_ARITHMETIC: { huge_arithmetic(); }
            operation_t.HUGE_BITWISE: { huge_bitwise(); }
            operation_t.HUGE_SHIFT: { huge_shift(); }
            operation_t.HUGE_COMPARE: {
                if (hdr.w.a256 == hdr.w.b256) { hdr.wr.truth = hdr.wr.truth | 1; }
                if (hdr.w.a256 < hdr.w.b256) { hdr.wr.truth = hdr.wr.truth | 2; }
                if (hdr.w.a256 > hdr.w.b256) { hdr.wr.truth = hdr.wr.truth | 4; }
            }
            operation_t.HUGE_SLICE: { huge_slice(); }
            default: { hdr.wr.truth = 0xffff; }
        }
    }
}

control ExpressionIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Narrow() narrow;
    Wide() wide;

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        if (hdr.n.isValid()) {
            narrow.apply(hdr);
        } else if (hdr.w.isValid()) {
            wide.apply(hdr);
        }
    }
}

control ExpressionEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control ExpressionComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ExpressionDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
        packet.emit(hdr.nr);
        packet.emit(hdr.wr);
    }
}

V1Switch(ExpressionParser(), ExpressionVerifyChecksum(), ExpressionIngress(), ExpressionEgress(),
         ExpressionComputeChecksum(), ExpressionDeparser()) main;
