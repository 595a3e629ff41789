/* Types that every test program shares. */
#ifndef _ETHERNET_P4_
#define _ETHERNET_P4_

typedef bit<48> mac_addr_t;
typedef bit<16> ether_type_t;
typedef bit<9> port_t;

header ethernet_t {
    mac_addr_t dst_addr;
    mac_addr_t src_addr;
    ether_type_t ether_type;
}

#endif
