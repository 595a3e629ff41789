/* Every hash algorithm that BMv2 loads, over fields that are whole bytes and over fields that are not, with base and range.
 * The packet comes back to its port with the hashes in front. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

header request_t {
    bit<48> mac;
    bit<32> address;
    bit<16> port;
    bit<8> protocol;
    bit<9> nine;
    bit<7> seven;
    bit<3> three;
    bit<5> five;
    bit<128> wide;
    bit<16> range; // 1 and up; 0 asks for no hash
}

header result_t {
    bit<16> crc16;
    bit<16> crc16_custom;
    bit<32> crc32;
    bit<32> crc32_custom;
    bit<16> csum16;
    bit<16> xor16;
    bit<32> identity;
    bit<16> crc16_odd;   // over fields that are not whole bytes
    bit<32> crc32_odd;
    bit<16> csum16_odd;
    bit<16> xor16_odd;
    bit<32> identity_odd;
    bit<32> crc32_wide;
    bit<16> ranged;      // base 100, max `range`
    bit<32> ranged_wide; // base 0, max 1000
    bit<8> narrow;       // a result narrower than the hash
    bit<64> long;        // a result wider than the hash
}

struct headers_t {
    result_t result;
    request_t request;
}

struct metadata_t { }

parser HashingParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control HashingVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control HashingIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action hash_bytes() {
        hash(hdr.result.crc16, HashAlgorithm.crc16, 16w0,
             { hdr.request.mac, hdr.request.address, hdr.request.port, hdr.request.protocol }, 17w0x10000);
        hash(hdr.result.crc16_custom, HashAlgorithm.crc16_custom, 16w0,
             { hdr.request.mac, hdr.request.address, hdr.request.port, hdr.request.protocol }, 17w0x10000);
        hash(hdr.result.crc32, HashAlgorithm.crc32, 32w0,
             { hdr.request.mac, hdr.request.address, hdr.request.port, hdr.request.protocol }, 33w0x100000000);
        hash(hdr.result.crc32_custom, HashAlgorithm.crc32_custom, 32w0,
             { hdr.request.mac, hdr.request.address, hdr.request.port, hdr.request.protocol }, 33w0x100000000);
        hash(hdr.result.csum16, HashAlgorithm.csum16, 16w0,
             { hdr.request.mac, hdr.request.address, hdr.request.port, hdr.request.protocol }, 17w0x10000);
        hash(hdr.result.xor16, HashAlgorithm.xor16, 16w0,
             { hdr.request.mac, hdr.request.address, hdr.request.port, hdr.request.protocol }, 17w0x10000);
        hash(hdr.result.identity, HashAlgorithm.identity, 32w0, { hdr.request.port, hdr.request.protocol },
             33w0x100000000);
    }

    action hash_odd() {
        hash(hdr.result.crc16_odd, HashAlgorithm.crc16, 16w0, { hdr.request.nine, hdr.request.three }, 17w0x10000);
        hash(hdr.result.crc32_odd, HashAlgorithm.crc32, 32w0,
             { hdr.request.seven, hdr.request.nine, hdr.request.five }, 33w0x100000000);
        hash(hdr.result.csum16_odd, HashAlgorithm.csum16, 16w0,
             { hdr.request.five, hdr.request.nine, hdr.request.address }, 17w0x10000);
        hash(hdr.result.xor16_odd, HashAlgorithm.xor16, 16w0,
             { hdr.request.three, hdr.request.nine, hdr.request.seven }, 17w0x10000);
        hash(hdr.result.identity_odd, HashAlgorithm.identity, 32w0, { hdr.request.nine, hdr.request.five },
             33w0x100000000);
        hash(hdr.result.crc32_wide, HashAlgorithm.crc32, 32w0, { hdr.request.wide, hdr.request.seven },
             33w0x100000000);
    }

    action hash_ranged() {
        hash(hdr.result.ranged, HashAlgorithm.crc16, 16w100, { hdr.request.address }, hdr.request.range);
        hash(hdr.result.ranged_wide, HashAlgorithm.crc32, 32w0, { hdr.request.address, hdr.request.wide }, 32w1000);
        hash(hdr.result.narrow, HashAlgorithm.crc32, 8w0, { hdr.request.mac }, 9w256);
        hash(hdr.result.long, HashAlgorithm.crc16, 64w7, { hdr.request.mac }, 64w0x100000000);
    }

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        if (hdr.request.isValid() && hdr.request.range != 0) {
            hdr.result.setValid();
            hash_bytes();
            hash_odd();
            hash_ranged();
        }
    }
}

control HashingEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control HashingComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control HashingDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.result);
        packet.emit(hdr.request);
    }
}

V1Switch(HashingParser(), HashingVerifyChecksum(), HashingIngress(), HashingEgress(), HashingComputeChecksum(),
         HashingDeparser()) main;
