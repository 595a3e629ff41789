/* What the port that a packet came in by leads to.
 * Reads the ingress port; writes meta.port_role. A port without an entry takes nothing, and neither does one that the
 * arrays of ports have no cell for; the timers' port takes timers. */
control PortRole(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x13000010)
    direct_counter(CounterType.packets_and_bytes) port_counter;

    @id(0x01000010) @brief("The port leads to a host or to another switch.")
    action set_role(port_role_t role) {
        port_counter.count();
        meta.port_role = role;
    }

    @id(0x01000011) @brief("The port is not in use.")
    action refuse() {
        port_counter.count();
        meta.drop_reason = drop_reason_t.PORT_UNUSED;
    }

    @id(0x02000010) @brief("The front-panel ports in use.")
    table port {
        key = { standard_metadata.ingress_port: exact @name("port"); }
        actions = { set_role; @defaultonly refuse; }
        const default_action = refuse();
        counters = port_counter;
        size = PORT_SIZE;
    }

    apply {
        if (standard_metadata.ingress_port < (port_t)PORTS) {
            port.apply();
        } else if (standard_metadata.ingress_port != TIMER_PORT || !hdr.timer.isValid()) {
            meta.drop_reason = drop_reason_t.PORT_UNUSED;
        }
    }
}
