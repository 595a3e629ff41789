/* Which planes do not lead to a destination, because the link between a plane and that host is down. Only the
 * controller knows: this NIC's own links to these planes are fine.
 * Reads the destination; writes meta.avoided. */
control Reach(inout headers_t hdr, inout metadata_t meta) {
    @id(0x010000d0) @brief("Ports that do not lead there.")
    action avoid_ports(port_mask_t ports) {
        meta.avoided = ports;
    }

    @id(0x020000d0) @brief("IPv4 destinations that not every plane leads to.")
    table reach_ipv4 {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = { avoid_ports; @defaultonly NoAction; }
        const default_action = NoAction();
        size = REACH_SIZE;
    }

    @id(0x020000d1) @brief("IPv6 destinations that not every plane leads to.")
    table reach_ipv6 {
        key = { hdr.ipv6.dst_addr: lpm @name("dst_addr"); }
        actions = { avoid_ports; @defaultonly NoAction; }
        const default_action = NoAction();
        size = REACH_SIZE;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            reach_ipv4.apply();
        } else {
            reach_ipv6.apply();
        }
    }
}
