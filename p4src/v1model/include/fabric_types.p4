/* The switch's headers and metadata. */
#ifndef _FABRIC_TYPES_P4_
#define _FABRIC_TYPES_P4_

const bit<32> EGRESS_CLONE = 2; // instance_type of a copy made in egress
const bit<32> POSTCARD_SESSION = 500;     // clone session of postcards
const bit<32> POSTCARD_LENGTH = 128;      // bytes of the packet that a postcard keeps, its own headers included
const bit<8> POSTCARD_FIELDS = 1;         // field list of a postcard

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    postcard_t postcard;
    ethernet_t ethernet;
    timer_t timer;
    heartbeat_t heartbeat;
    ipv4_t ipv4;
    ipv4_options_t ipv4_options;
    ipv6_t ipv6;
    l4_ports_t l4;
}

/* What a postcard tells of the packet that it is a copy of. */
struct postcard_metadata_t {
    @field_list(POSTCARD_FIELDS)
    port_t port;
    @field_list(POSTCARD_FIELDS)
    queue_id_t queue;
    @field_list(POSTCARD_FIELDS)
    traffic_class_t traffic_class;
    @field_list(POSTCARD_FIELDS)
    depth_t enq_depth;
    @field_list(POSTCARD_FIELDS)
    depth_t deq_depth;
    @field_list(POSTCARD_FIELDS)
    bit<32> waited;
    @field_list(POSTCARD_FIELDS)
    ticks_t time;
}

struct metadata_t {
    drop_reason_t drop_reason; // NONE as long as the packet lives
    port_role_t port_role;
    traffic_class_t traffic_class;
    queue_id_t queue;
    dscp_t dscp;
    bit<8> protocol;           // of IPv4 or IPv6
    bit<16> l4_src_port;       // 0 where there are none
    bit<16> l4_dst_port;
    bit<32> flow_hash;         // of the five-tuple
    group_id_t group_id;
    port_mask_t avoided;       // ports that do not lead to the destination: none, routes choose the group
    port_mask_t links_healthy; // links that are up
    port_mask_t links_usable;  // and those that are better than nothing
    member_sums_t sums;
    port_t port;               // that the packet will leave by
    punt_reason_t punt_reason; // NONE unless the packet is on its way to the controller
    bool dropped_early;        // by its queue, in egress
    postcard_metadata_t postcard;
}

#endif
