/* An L3 router in five tables: access list, IPv4 and IPv6 routes, neighbours, and the router's own ports.
 * An IPv4 packet passes four of them. This is the program of the demo and of the benchmark. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>
#include "include/ethernet.p4"

const port_t CPU_PORT = 510;

const ether_type_t ETHERTYPE_IPV4 = 0x0800;
const ether_type_t ETHERTYPE_IPV6 = 0x86dd;

const int ACL_SIZE = 4096;
const int ROUTE_IPV4_SIZE = 131072;
const int ROUTE_IPV6_SIZE = 16384;
const int NEIGHBOUR_SIZE = 4096;
const int PORT_SIZE = 512;

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

typedef bit<16> nexthop_id_t;

/* Why a packet was sent to the controller. */
enum bit<7> punt_reason_t {
    ACL = 1,
    ROUTE = 2,
    TTL = 3
}

@controller_header("packet_in")
header packet_in_t {
    port_t ingress_port;
    punt_reason_t reason;
}

@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<7> _pad;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl; // 32-bit words
    bit<6> dscp;
    bit<2> ecn;
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

header ipv6_t {
    bit<4> version;
    bit<8> traffic_class;
    bit<20> flow_label;
    bit<16> payload_len; // bytes
    bit<8> next_header;
    bit<8> hop_limit;
    bit<128> src_addr;
    bit<128> dst_addr;
}

/* The start of TCP and of UDP. */
header l4_ports_t {
    bit<16> src_port;
    bit<16> dst_port;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    ipv4_t ipv4;
    ipv6_t ipv6;
    l4_ports_t l4;
}

struct metadata_t {
    nexthop_id_t nexthop_id;
    bit<16> l4_src_port; // 0 where there are none
    bit<16> l4_dst_port;
    bool routed; // a route chose nexthop_id
}

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        meta.nexthop_id = 0;
        meta.l4_src_port = 0;
        meta.l4_dst_port = 0;
        meta.routed = false;
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): parse_l4;
            (5, 0, PROTOCOL_UDP): parse_l4;
            default: accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP: parse_l4;
            PROTOCOL_UDP: parse_l4;
            default: accept;
        }
    }

    state parse_l4 {
        packet.extract(hdr.l4);
        meta.l4_src_port = hdr.l4.src_port;
        meta.l4_dst_port = hdr.l4.dst_port;
        transition accept;
    }
}

control RouterVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) acl_counter;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action punt(punt_reason_t reason) {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in.reason = reason;
        standard_metadata.egress_spec = CPU_PORT;
    }

    action acl_permit() {
        acl_counter.count();
    }

    action acl_deny() {
        acl_counter.count();
        drop();
        exit;
    }

    action acl_punt() {
        acl_counter.count();
        punt(punt_reason_t.ACL);
        exit;
    }

    table acl {
        key = {
            standard_metadata.ingress_port: ternary @name("ingress_port");
            hdr.ipv4.src_addr: ternary @name("src_addr");
            hdr.ipv4.dst_addr: ternary @name("dst_addr");
            hdr.ipv4.protocol: ternary @name("protocol");
            meta.l4_src_port: ternary @name("l4_src_port");
            meta.l4_dst_port: ternary @name("l4_dst_port");
        }
        actions = { acl_permit; acl_deny; acl_punt; }
        const default_action = acl_permit();
        counters = acl_counter;
        size = ACL_SIZE;
    }

    action route_via(nexthop_id_t nexthop_id) {
        meta.nexthop_id = nexthop_id;
        meta.routed = true;
    }

    action route_punt() {
        punt(punt_reason_t.ROUTE);
    }

    table route_ipv4 {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = { route_via; route_punt; drop; }
        default_action = drop();
        size = ROUTE_IPV4_SIZE;
    }

    table route_ipv6 {
        key = { hdr.ipv6.dst_addr: lpm @name("dst_addr"); }
        actions = { route_via; route_punt; drop; }
        default_action = drop();
        size = ROUTE_IPV6_SIZE;
    }

    action forward(port_t port, mac_addr_t dst_addr) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.dst_addr = dst_addr;
    }

    table neighbour {
        key = { meta.nexthop_id: exact @name("nexthop_id"); }
        actions = { forward; drop; }
        const default_action = drop();
        size = NEIGHBOUR_SIZE;
    }

    action set_source(mac_addr_t src_addr) {
        hdr.ethernet.src_addr = src_addr;
    }

    table router_port {
        key = { standard_metadata.egress_spec: exact @name("port"); }
        actions = { set_source; drop; }
        const default_action = drop();
        size = PORT_SIZE;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }
        if (standard_metadata.checksum_error == 1 || standard_metadata.parser_error != error.NoError) {
            drop();
        } else if (hdr.ipv4.isValid()) {
            acl.apply();
            if (hdr.ipv4.ttl <= 1) {
                punt(punt_reason_t.TTL);
            } else {
                route_ipv4.apply();
                if (meta.routed) {
                    hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                }
            }
        } else if (hdr.ipv6.isValid()) {
            if (hdr.ipv6.hop_limit <= 1) {
                punt(punt_reason_t.TTL);
            } else {
                route_ipv6.apply();
                if (meta.routed) {
                    hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                }
            }
        } else {
            drop();
        }
        if (meta.routed) {
            neighbour.apply();
            router_port.apply();
        }
    }
}

control RouterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control RouterComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.l4);
    }
}

V1Switch(RouterParser(), RouterVerifyChecksum(), RouterIngress(), RouterEgress(), RouterComputeChecksum(),
         RouterDeparser()) main;
