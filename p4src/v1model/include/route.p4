/* Which group of ports leads to the destination.
 * Reads addresses; writes meta.group_id and lowers TTL or hop limit, or says why there is no way. */
control Route(inout headers_t hdr, inout metadata_t meta) {
    @id(0x13000040)
    direct_counter(CounterType.packets_and_bytes) route_ipv4_counter;
    @id(0x13000041)
    direct_counter(CounterType.packets_and_bytes) route_ipv6_counter;

    @id(0x01000040) @brief("The frame is for this switch.")
    action accept_station() { }

    @id(0x01000041) @brief("The frame is for somebody else.")
    action refuse_station() {
        meta.drop_reason = drop_reason_t.NOT_OUR_MAC;
    }

    @id(0x02000040) @brief("Own MAC addresses.")
    table station {
        key = { hdr.ethernet.dst_addr: exact @name("dst_addr"); }
        actions = { accept_station; @defaultonly refuse_station; }
        const default_action = refuse_station();
        size = STATION_SIZE;
    }

    @id(0x01000042)
    action ipv4_via(group_id_t group_id) {
        route_ipv4_counter.count();
        meta.group_id = group_id;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    @id(0x01000043)
    action ipv4_punt() {
        route_ipv4_counter.count();
        meta.punt_reason = punt_reason_t.ROUTE;
    }

    @id(0x01000044)
    action ipv4_discard() {
        route_ipv4_counter.count();
        meta.drop_reason = drop_reason_t.ROUTE_DISCARD;
    }

    @id(0x01000045)
    action no_route() {
        meta.drop_reason = drop_reason_t.NO_ROUTE;
    }

    @id(0x02000041) @brief("IPv4 routes.")
    table route_ipv4 {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = { ipv4_via; ipv4_punt; ipv4_discard; @defaultonly no_route; }
        const default_action = no_route();
        counters = route_ipv4_counter;
        size = ROUTE_IPV4_SIZE;
    }

    @id(0x01000046)
    action ipv6_via(group_id_t group_id) {
        route_ipv6_counter.count();
        meta.group_id = group_id;
        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
    }

    @id(0x01000047)
    action ipv6_punt() {
        route_ipv6_counter.count();
        meta.punt_reason = punt_reason_t.ROUTE;
    }

    @id(0x01000048)
    action ipv6_discard() {
        route_ipv6_counter.count();
        meta.drop_reason = drop_reason_t.ROUTE_DISCARD;
    }

    @id(0x02000042) @brief("IPv6 routes.")
    table route_ipv6 {
        key = { hdr.ipv6.dst_addr: lpm @name("dst_addr"); }
        actions = { ipv6_via; ipv6_punt; ipv6_discard; @defaultonly no_route; }
        const default_action = no_route();
        counters = route_ipv6_counter;
        size = ROUTE_IPV6_SIZE;
    }

    apply {
        if (!station.apply().hit) {
            return;
        }
        if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.ttl <= 1) {
                meta.drop_reason = drop_reason_t.TTL;
            } else {
                route_ipv4.apply();
            }
        } else if (hdr.ipv6.isValid()) {
            if (hdr.ipv6.hop_limit <= 1) {
                meta.drop_reason = drop_reason_t.TTL;
            } else {
                route_ipv6.apply();
            }
        } else {
            meta.drop_reason = drop_reason_t.NOT_IP;
        }
    }
}
