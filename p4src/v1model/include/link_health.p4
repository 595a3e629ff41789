/* Knows which links work, from heartbeats and from counts of packets.
 *
 * A timer packet for a port (from TIMER_PORT) becomes that port's own heartbeat; judge_link makes of both, and of the
 * neighbor's heartbeats, what is thought of the link. Reads timers and heartbeats; counts what comes in on every port,
 * and writes meta.links_healthy and meta.links_usable for every packet. */
control LinkHealth(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // indexed by port; written here only
    register<packet_count_t, port_index_t>(PORTS) rx_packets_register;
    // one cell each, bit p is port p; written here only
    register<port_mask_t, bit<1>>(1) links_healthy_register;
    register<port_mask_t, bit<1>>(1) links_usable_register;

    port_t port = 0;
    packet_count_t rx_packets = 0;
    port_mask_t port_bit = 0;
    bool judged = false;
    bool healthy = false;
    bool usable = false;
    WatchPort() watch_port;
    JudgeLink() judge_link;

    @hidden action count_received() {
        rx_packets_register.read(rx_packets, (port_index_t)port);
        rx_packets = rx_packets + 1;
        rx_packets_register.write((port_index_t)port, rx_packets);
    }

    @hidden action share_masks() {
        links_healthy_register.read(meta.links_healthy, 0);
        links_usable_register.read(meta.links_usable, 0);
    }

    @hidden action update_masks() {
        port_bit = 64w1 << (bit<8>)port;
        meta.links_healthy = healthy ? meta.links_healthy | port_bit : meta.links_healthy & ~port_bit;
        meta.links_usable = usable ? meta.links_usable | port_bit : meta.links_usable & ~port_bit;
        links_healthy_register.write(0, meta.links_healthy);
        links_usable_register.write(0, meta.links_usable);
    }

    apply {
        if (standard_metadata.ingress_port < (port_t)PORTS) {
            port = standard_metadata.ingress_port;
            count_received();
        }
        share_masks();
        if (meta.drop_reason == drop_reason_t.NONE && (hdr.timer.isValid() || hdr.heartbeat.isValid())) {
            if (hdr.timer.isValid() && (standard_metadata.ingress_port != TIMER_PORT
                                        || hdr.timer.port >= (bit<16>)PORTS)) {
                meta.drop_reason = drop_reason_t.TIMER_MISPLACED;
            } else {
                if (hdr.timer.isValid()) {
                    port = hdr.timer.port[8:0];
                }
                judge_link.apply(hdr, meta, standard_metadata, port, rx_packets, judged, healthy, usable);
                if (judged) {
                    update_masks();
                } else if (hdr.timer.isValid()) {
                    watch_port.apply(hdr, standard_metadata);
                }
            }
        }
    }
}
