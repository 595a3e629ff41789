/* Headers on the wire, fields in wire order. */
#ifndef _HEADERS_P4_
#define _HEADERS_P4_

@controller_header("packet_in")
header packet_in_t {
    port_t ingress_port; // of a postcard: the port that the packet left by
    punt_reason_t reason;
}

@controller_header("packet_out")
header packet_out_t {
    port_t egress_port;
    bit<7> _pad;
}

/* Between packet_in and the packet's own first bytes, where the reason is POSTCARD. */
header postcard_t {
    bit<8> queue;
    bit<8> traffic_class;
    depth_t enq_depth;   // packets in the queue as it came
    depth_t deq_depth;   // packets left in the queue as it went
    bit<32> waited;      // ticks
    ticks_t time;        // as it left
}

header ethernet_t {
    mac_addr_t dst_addr;
    mac_addr_t src_addr;
    ether_type_t ether_type;
}

/* A timer packet says: port's heartbeat is due, and whether there is a carrier. */
header timer_t {
    bit<16> port;
    bit<8> is_down; // 1: the port has no carrier
}

/* From one end of a link to the other, in the control class. */
header heartbeat_t {
    device_id_t device;        // who sends
    bit<16> port;              // and where
    bit<32> sequence;          // of this port's heartbeats
    ticks_t time;              // of the sender's clock, as it leaves
    packet_count_t tx_packets; // sent on this link so far, this one included
    link_state_t rx_state;     // how well the sender receives on this link
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl; // 32-bit words
    dscp_t dscp;
    ecn_t ecn;
    bit<16> total_len; // bytes
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset; // 8 bytes
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ipv4_addr_t src_addr;
    ipv4_addr_t dst_addr;
}

header ipv4_options_t {
    varbit<320> options;
}

header ipv6_t {
    bit<4> version;
    dscp_t dscp;
    ecn_t ecn;
    bit<20> flow_label;
    bit<16> payload_len; // bytes
    bit<8> next_header;
    bit<8> hop_limit;
    ipv6_addr_t src_addr;
    ipv6_addr_t dst_addr;
}

/* The start of TCP and of UDP. */
header l4_ports_t {
    bit<16> src_port;
    bit<16> dst_port;
}

#endif
