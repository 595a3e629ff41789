/* The SmartNIC's headers and metadata. */
#ifndef _SMARTNIC_TYPES_P4_
#define _SMARTNIC_TYPES_P4_

const ether_type_t ETHERTYPE_ARP = 0x0806;
const bit<8> PROTOCOL_ICMPV6 = 58;
const bit<8> ND_SOLICITATION = 135;
const bit<8> ND_ADVERTISEMENT = 136;
const bit<16> ARP_REQUEST = 1;
const bit<16> ARP_REPLY = 2;
const bit<32> ND_FRAME_LENGTH = 86; // bytes: Ethernet, IPv6, advertisement with one option

// both lead to the planes; spray_mode of the first may spray, of the second it keeps flows together
const group_id_t UDP_GROUP = 1;
const group_id_t FLOW_GROUP = 2;

header arp_t {
    bit<16> hardware_type;
    bit<16> protocol_type;
    bit<8> hardware_len;
    bit<8> protocol_len;
    bit<16> operation;
    mac_addr_t sender_mac;
    ipv4_addr_t sender_addr;
    mac_addr_t target_mac;
    ipv4_addr_t target_addr;
}

/* Neighbor solicitation and advertisement (RFC 4861). */
header nd_t {
    bit<8> type;
    bit<8> code;
    bit<16> checksum;
    bit<1> router;
    bit<1> solicited;
    bit<1> overrides;
    bit<29> _reserved;
    ipv6_addr_t target_addr;
}

/* The target's link-layer address. */
header nd_option_t {
    bit<8> type;
    bit<8> length; // 8 bytes
    mac_addr_t mac;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    timer_t timer;
    heartbeat_t heartbeat;
    arp_t arp;
    ipv4_t ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t ipv6;
    nd_t nd;
    nd_option_t nd_option;
    l4_ports_t l4;
}

struct metadata_t {
    drop_reason_t drop_reason; // NONE as long as the packet lives
    port_role_t port_role;     // HOST, or FABRIC for a plane
    traffic_class_t traffic_class;
    queue_id_t queue;
    dscp_t dscp;
    bit<8> protocol;           // of IPv4 or IPv6
    bit<16> l4_src_port;       // 0 where there are none
    bit<16> l4_dst_port;
    bit<32> flow_hash;         // of the five-tuple
    group_id_t group_id;
    port_mask_t avoided;       // ports that do not lead to the destination
    port_mask_t links_healthy; // links that are up
    port_mask_t links_usable;  // and those that are better than nothing
    punt_reason_t punt_reason; // NONE unless the packet is on its way to the controller
    member_sums_t sums;
    port_t port;               // that the packet will leave by
    bool answered;             // the NIC itself has answered
    ipv4_addr_t host_ipv4;     // the address that must be the host's: the source of what it sends, the destination
    ipv6_addr_t host_ipv6;     // of what it gets
    bool dropped_early;        // by its queue, in egress
}

#endif
