/* Types that every program shares. */
#ifndef _TYPES_P4_
#define _TYPES_P4_

typedef bit<48> mac_addr_t;
typedef bit<32> ipv4_addr_t;
typedef bit<128> ipv6_addr_t;
typedef bit<16> ether_type_t;
typedef bit<6> dscp_t;

typedef bit<9> port_t;
typedef bit<64> port_mask_t;    // bit p is port p
typedef bit<8> port_count_t;    // ports of a mask
typedef bit<32> port_index_t;   // of arrays with a cell for every port
typedef bit<32> queue_index_t;  // of arrays with a cell for every queue: port * 8 + queue
typedef bit<32> device_id_t;
typedef bit<16> group_id_t;
typedef bit<8> profile_id_t;
typedef bit<3> queue_id_t;      // a larger number is served first
typedef bit<48> ticks_t;        // the target's clock
typedef bit<32> packet_count_t; // modulo 2^32
typedef bit<32> depth_t;        // of a queue; packets here, cells on Tofino
typedef bit<32> share_t;        // of 65536; 65536 is always

/* How many members a mask has in 2, 4, 8, 16 and 32 ports. */
struct member_sums_t {
    port_mask_t by2;
    port_mask_t by4;
    port_mask_t by8;
    port_mask_t by16;
    port_mask_t by32;
    port_count_t all;
}

/* What a port leads to. */
enum bit<8> port_role_t {
    UNUSED = 0,
    HOST = 1,  // a host or its NIC: source addresses are checked
    FABRIC = 2 // another switch
}

enum bit<8> traffic_class_t {
    CONTROL = 1, // acknowledgements, probes, heartbeats, credit: never marked
    DATA = 2,
    OTHER = 3
}

/* How a group chooses a member. */
enum bit<2> spray_mode_t {
    ECMP = 0,
    RANDOM = 1,
    ROUND_ROBIN = 2,
    ADAPTIVE = 3
}

/* A link as one end sees it. */
enum bit<8> link_state_t {
    UNKNOWN = 0,   // no heartbeat was due yet
    UP = 1,
    DEGRADED = 2,  // it loses packets: used only where nothing better is left
    DOWN = 3,      // not used
    PROBATION = 4  // it was down and is clean so far: used only where nothing better is left
}

/* Why a link event was sent. */
enum bit<8> link_reason_t {
    NONE = 0,
    HEARD = 1,     // the first heartbeat of a link that was unknown or down
    MISSED = 2,    // too many heartbeats missed in a row
    MISCABLED = 3, // somebody other than the configured neighbor
    LOSS = 4,      // packets that the neighbor sent have not arrived; repeated as the estimate improves
    CLEAN = 5,     // probation passed, or two windows without that loss
    NEIGHBOR = 6,  // the neighbor told that its own view has changed
    CARRIER = 7    // this end has no carrier
}

/* Why a packet was dropped in ingress: the index of counter `drops`. */
enum bit<5> drop_reason_t {
    NONE = 0,
    PORT_UNUSED = 1,
    PARSER_ERROR = 2,
    BAD_CHECKSUM = 3,
    NOT_IP = 4,
    NOT_OUR_MAC = 5,
    TTL = 6,
    SOURCE_GUARD = 7,
    ACL = 8,
    NO_ROUTE = 9,
    ROUTE_DISCARD = 10,
    NO_GROUP = 11,
    NO_MEMBER = 12,      // every member of the group is down
    NO_NEIGHBOR = 13,
    PUNT_RATE = 14,
    HEARTBEAT_MISPLACED = 15,
    TIMER_MISPLACED = 16,
    NOT_FOR_HOST = 17    // SmartNIC: from a plane, for another host
}

/* Why the controller gets a packet. */
enum bit<7> punt_reason_t {
    NONE = 0,
    ACL = 1,
    ROUTE = 2,
    POSTCARD = 3
}

enum bit<2> ecn_t {
    NOT_ECT = 0,
    ECT1 = 1,
    ECT0 = 2,
    CE = 3
}

#endif
