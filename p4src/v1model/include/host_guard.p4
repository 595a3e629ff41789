/* Only the host's own addresses leave as sources, and only packets for them reach it.
 * Reads addresses and meta.port_role; writes meta.drop_reason, and for packets to the host meta.port. */
control HostGuard(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x130000c0)
    direct_counter(CounterType.packets_and_bytes) host_ipv4_counter;
    @id(0x130000c1)
    direct_counter(CounterType.packets_and_bytes) host_ipv6_counter;

    @id(0x010000c0) @brief("The frame is for this NIC.")
    action accept_station() { }

    @id(0x010000c1)
    action refuse_station() {
        meta.drop_reason = drop_reason_t.NOT_OUR_MAC;
    }

    @id(0x020000c0) @brief("MAC addresses that the NIC answers for and receives on.")
    table station {
        key = { hdr.ethernet.dst_addr: exact @name("dst_addr"); }
        actions = { accept_station; @defaultonly refuse_station; }
        const default_action = refuse_station();
        size = STATION_SIZE;
    }

    @id(0x010000c2) @brief("The address is the host's, which is at this port.")
    action own_ipv4(port_t port) {
        host_ipv4_counter.count();
        meta.port = port;
    }

    @id(0x010000c3) @brief("The address is the host's, which is at this port.")
    action own_ipv6(port_t port) {
        host_ipv6_counter.count();
        meta.port = port;
    }

    @id(0x010000c4) @brief("The address is not the host's.")
    action foreign() {
        meta.drop_reason = meta.port_role == port_role_t.HOST ? drop_reason_t.SOURCE_GUARD
                                                              : drop_reason_t.NOT_FOR_HOST;
    }

    @id(0x020000c1) @brief("The host's IPv4 addresses.")
    table host_ipv4 {
        key = { meta.host_ipv4: exact @name("addr"); }
        actions = { own_ipv4; @defaultonly foreign; }
        const default_action = foreign();
        counters = host_ipv4_counter;
        size = HOST_ADDRESS_SIZE;
    }

    @id(0x020000c2) @brief("The host's IPv6 addresses.")
    table host_ipv6 {
        key = { meta.host_ipv6: exact @name("addr"); }
        actions = { own_ipv6; @defaultonly foreign; }
        const default_action = foreign();
        counters = host_ipv6_counter;
        size = HOST_ADDRESS_SIZE;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            meta.drop_reason = drop_reason_t.PARSER_ERROR;
        } else if (standard_metadata.checksum_error == 1) {
            meta.drop_reason = drop_reason_t.BAD_CHECKSUM;
        } else if (station.apply().hit) {
            if (hdr.ipv4.isValid()) {
                meta.host_ipv4 = meta.port_role == port_role_t.HOST ? hdr.ipv4.src_addr : hdr.ipv4.dst_addr;
                host_ipv4.apply();
            } else if (hdr.ipv6.isValid()) {
                meta.host_ipv6 = meta.port_role == port_role_t.HOST ? hdr.ipv6.src_addr : hdr.ipv6.dst_addr;
                host_ipv6.apply();
            } else {
                meta.drop_reason = drop_reason_t.NOT_IP;
            }
        }
    }
}
