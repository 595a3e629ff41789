/* What must not pass: broken headers, foreign source addresses on host ports, what the access list denies.
 * Reads headers and meta.port_role; writes meta.drop_reason or sends the packet to the controller, at most at the
 * meter's rate. */
control Protect(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x13000030)
    direct_counter(CounterType.packets_and_bytes) acl_counter;

    @id(0x01000030) @brief("The source address belongs on this port.")
    action accept_source() { }

    @id(0x01000031) @brief("The source address does not belong on this port.")
    action refuse_source() {
        meta.drop_reason = drop_reason_t.SOURCE_GUARD;
    }

    @id(0x02000030) @brief("IPv4 sources allowed on host ports.")
    table source_guard_ipv4 {
        key = {
            standard_metadata.ingress_port: exact @name("port");
            hdr.ipv4.src_addr: lpm @name("src_addr");
        }
        actions = { accept_source; @defaultonly refuse_source; }
        const default_action = refuse_source();
        size = SOURCE_GUARD_SIZE;
    }

    @id(0x02000031) @brief("IPv6 sources allowed on host ports.")
    table source_guard_ipv6 {
        key = {
            standard_metadata.ingress_port: exact @name("port");
            hdr.ipv6.src_addr: lpm @name("src_addr");
        }
        actions = { accept_source; @defaultonly refuse_source; }
        const default_action = refuse_source();
        size = SOURCE_GUARD_SIZE;
    }

    @id(0x01000032)
    action acl_permit() {
        acl_counter.count();
    }

    @id(0x01000033)
    action acl_deny() {
        acl_counter.count();
        meta.drop_reason = drop_reason_t.ACL;
    }

    @id(0x01000034) @brief("To the controller instead of on its way.")
    action acl_punt() {
        acl_counter.count();
        meta.punt_reason = punt_reason_t.ACL;
    }

    @id(0x02000032) @brief("Access list; fields of the other IP version match as zero.")
    table acl {
        key = {
            standard_metadata.ingress_port: ternary @name("port");
            hdr.ethernet.ether_type: ternary @name("ether_type");
            hdr.ipv4.src_addr: ternary @name("ipv4_src_addr");
            hdr.ipv4.dst_addr: ternary @name("ipv4_dst_addr");
            hdr.ipv6.src_addr: ternary @name("ipv6_src_addr");
            hdr.ipv6.dst_addr: ternary @name("ipv6_dst_addr");
            meta.protocol: ternary @name("protocol");
            meta.l4_src_port: ternary @name("l4_src_port");
            meta.l4_dst_port: ternary @name("l4_dst_port");
        }
        actions = { acl_permit; acl_deny; acl_punt; }
        const default_action = acl_permit();
        counters = acl_counter;
        size = ACL_SIZE;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            meta.drop_reason = drop_reason_t.PARSER_ERROR;
        } else if (standard_metadata.checksum_error == 1) {
            meta.drop_reason = drop_reason_t.BAD_CHECKSUM;
        } else {
            if (meta.port_role == port_role_t.HOST) {
                if (hdr.ipv4.isValid()) {
                    source_guard_ipv4.apply();
                } else if (hdr.ipv6.isValid()) {
                    source_guard_ipv6.apply();
                }
            }
            if (meta.drop_reason == drop_reason_t.NONE) {
                acl.apply();
            }
        }
    }
}
