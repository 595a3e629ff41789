/* Checksums verified and updated: the IPv4 header with options that may be absent, UDP and TCP with their payload, a checksum
 * by CRC, a condition that decides, and headers that are not valid among the inputs.
 * The packet comes back to its port with `report` in front. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

header request_t {
    bit<1> update_ipv4;
    bit<1> update_l4;
    bit<1> update_crc;
    bit<1> drop_options; // the options header is made invalid in ingress
    bit<1> has_crc;      // crc_t follows
    bit<3> _pad;
}

header crc_t {
    bit<16> value;  // crc16 over `first` and `second`
    bit<12> first;
    bit<4> second;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl; // 32-bit words
    bit<8> dscp_ecn;
    bit<16> total_len; // bytes
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header options_t {
    varbit<320> data;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length; // bytes
    bit<16> checksum;
}

header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4> data_offset;
    bit<12> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header report_t {
    bit<8> checksum_error;
    bit<8> parser_failed;
}

struct headers_t {
    report_t report;
    request_t request;
    crc_t crc;
    ipv4_t ipv4;
    options_t options;
    udp_t udp;
    tcp_t tcp;
}

struct metadata_t {
    bit<16> l4_length; // bytes
    bit<1> update_ipv4;
    bit<1> update_l4;
    bit<1> update_crc;
}

parser ChecksumParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    state start {
        meta = { 0, 0, 0, 0 };
        packet.extract(hdr.request);
        meta.update_ipv4 = hdr.request.update_ipv4;
        meta.update_l4 = hdr.request.update_l4;
        meta.update_crc = hdr.request.update_crc;
        transition select(hdr.request.has_crc) {
            1: parse_crc;
            default: parse_ipv4;
        }
    }

    state parse_crc {
        packet.extract(hdr.crc);
        transition parse_ipv4;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.ihl >= 5, error.HeaderTooShort);
        meta.l4_length = hdr.ipv4.total_len - ((bit<16>)hdr.ipv4.ihl << 2);
        transition select(hdr.ipv4.ihl) {
            5: parse_l4;
            default: parse_options;
        }
    }

    state parse_options {
        packet.extract(hdr.options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        transition parse_l4;
    }

    state parse_l4 {
        transition select(hdr.ipv4.protocol) {
            PROTOCOL_UDP: parse_udp;
            PROTOCOL_TCP: parse_tcp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }
}

control ChecksumVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp_ecn, hdr.ipv4.total_len, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_addr,
              hdr.ipv4.dst_addr, hdr.options.data },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.udp.isValid() && hdr.udp.checksum != 0,
            { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, 8w0, hdr.ipv4.protocol, meta.l4_length, hdr.udp.src_port,
              hdr.udp.dst_port, hdr.udp.length },
            hdr.udp.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.crc.isValid(), { hdr.crc.first, hdr.crc.second }, hdr.crc.value, HashAlgorithm.crc16);
    }
}

control ChecksumIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        hdr.report.setValid();
        hdr.report.checksum_error = (bit<8>)standard_metadata.checksum_error;
        hdr.report.parser_failed = 0;
        if (standard_metadata.parser_error != error.NoError) {
            hdr.report.parser_failed = 1;
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            hdr.ipv4.dst_addr = hdr.ipv4.dst_addr ^ 0x00ff00ff;
            if (hdr.request.drop_options == 1) {
                hdr.options.setInvalid();
                hdr.ipv4.ihl = 5;
            }
        }
    }
}

control ChecksumEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control ChecksumCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && meta.update_ipv4 == 1,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp_ecn, hdr.ipv4.total_len, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_addr,
              hdr.ipv4.dst_addr, hdr.options.data },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.udp.isValid() && meta.update_l4 == 1,
            { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, 8w0, hdr.ipv4.protocol, meta.l4_length, hdr.udp.src_port,
              hdr.udp.dst_port, hdr.udp.length },
            hdr.udp.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.tcp.isValid() && meta.update_l4 == 1,
            { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, 8w0, hdr.ipv4.protocol, meta.l4_length, hdr.tcp.src_port,
              hdr.tcp.dst_port, hdr.tcp.sequence, hdr.tcp.acknowledgement, hdr.tcp.data_offset, hdr.tcp.flags,
              hdr.tcp.window, hdr.tcp.urgent },
            hdr.tcp.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.crc.isValid() && meta.update_crc == 1, { hdr.crc.first, hdr.crc.second }, hdr.crc.value,
            HashAlgorithm.crc16);
    }
}

control ChecksumDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report);
        packet.emit(hdr.request);
        packet.emit(hdr.crc);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.options);
        packet.emit(hdr.udp);
        packet.emit(hdr.tcp);
    }
}

V1Switch(ChecksumParser(), ChecksumVerify(), ChecksumIngress(), ChecksumEgress(), ChecksumCompute(),
         ChecksumDeparser()) main;
