/* What the frame looks like on the link that was chosen.
 * Reads meta.port; writes both MAC addresses and the egress port. */
control Rewrite(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x13000060)
    direct_counter(CounterType.packets_and_bytes) neighbor_counter;

    @id(0x01000060)
    action set_macs(mac_addr_t src_addr, mac_addr_t dst_addr) {
        neighbor_counter.count();
        hdr.ethernet.src_addr = src_addr;
        hdr.ethernet.dst_addr = dst_addr;
        standard_metadata.egress_spec = meta.port;
    }

    @id(0x01000061)
    action no_neighbor() {
        meta.drop_reason = drop_reason_t.NO_NEIGHBOR;
    }

    @id(0x02000060) @brief("Who is at the other end of a port.")
    table neighbor {
        key = { meta.port: exact @name("port"); }
        actions = { set_macs; @defaultonly no_neighbor; }
        const default_action = no_neighbor();
        counters = neighbor_counter;
        size = NEIGHBOR_SIZE;
    }

    apply {
        neighbor.apply();
    }
}
