/* Numbers that programs, tests and controller agree on. */
#ifndef _CONSTANTS_P4_
#define _CONSTANTS_P4_

const port_t TIMER_PORT = 509; // timer packets come in here: the packet generator, or a process beside the switch
const port_t CPU_PORT = 510;   // packet-in and packet-out

const ether_type_t ETHERTYPE_IPV4 = 0x0800;
const ether_type_t ETHERTYPE_IPV6 = 0x86dd;
const ether_type_t ETHERTYPE_HEARTBEAT = 0x88b5; // IEEE 802: local experimental 1
const ether_type_t ETHERTYPE_TIMER = 0x88b6;     // IEEE 802: local experimental 2

const mac_addr_t NEAREST_BRIDGE = 0x0180c200000e; // IEEE 802.1Q: never forwarded by a bridge
const mac_addr_t HEARTBEAT_SOURCE = 0x020000000000; // locally administered; the low half is the device's number

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

const dscp_t DSCP_CONTROL = 48; // of a heartbeat, which has no IP header

const bit<32> PPM = 1000000;

const bit<16> REPEAT_TIMERS = 100; // what is known of a port's carrier is told again after so many

#endif
