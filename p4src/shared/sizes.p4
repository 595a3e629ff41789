/* How large tables and arrays are. */
#ifndef _SIZES_P4_
#define _SIZES_P4_

const int PORTS = 64;               // front-panel ports are 1..63; 0 stays free
const int QUEUES = 512;             // PORTS * 8
const int DEPTH_BUCKETS = 8192;     // QUEUES * 16
const int GROUPS = 65536;           // every group_id_t, however few of them exist at a time
const int DROP_REASONS = 32;        // every drop_reason_t

const int PORT_SIZE = 64;
const int LINK_SIZE = 64;
const int HEALTH_PROFILE_SIZE = 16;
const int TRAFFIC_CLASS_SIZE = 64;
@noWarn("unused") const int ACL_SIZE = 1024;
@noWarn("unused") const int SOURCE_GUARD_SIZE = 4096;
const int STATION_SIZE = 128;
@noWarn("unused") const int ROUTE_IPV4_SIZE = 131072;
@noWarn("unused") const int ROUTE_IPV6_SIZE = 65536;
const int GROUP_SIZE = 4096;
const int SPRAY_MODE_SIZE = 8192;
const int NEIGHBOR_SIZE = 64;
const int ECN_PROFILE_SIZE = 256;
@noWarn("unused") const int POSTCARD_SIZE = 256;
@noWarn("unused") const int ANSWER_SIZE = 16;
@noWarn("unused") const int HOST_ADDRESS_SIZE = 16;
@noWarn("unused") const int REACH_SIZE = 4096;

#endif
