/* What became of packets that were not forwarded: to the controller, or dropped and counted by reason.
 * Reads meta.punt_reason and meta.drop_reason; writes hdr.packet_in. */
control Explain(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x12000070) @brief("Ingress drops by drop_reason_t.")
    counter<bit<32>>(DROP_REASONS, CounterType.packets_and_bytes) drops;
    @id(0x14000070) @brief("Packets to the controller, by ingress port.")
    meter<port_index_t>(PORTS, MeterType.packets) punt_meter;

    bit<2> color = 0;

    apply {
        if (meta.punt_reason != punt_reason_t.NONE && meta.drop_reason == drop_reason_t.NONE) {
            punt_meter.execute_meter((port_index_t)standard_metadata.ingress_port[5:0], color);
            if (color == 0) {
                hdr.packet_in.setValid();
                hdr.packet_in.ingress_port = standard_metadata.ingress_port;
                hdr.packet_in.reason = meta.punt_reason;
                standard_metadata.egress_spec = CPU_PORT;
            } else {
                meta.drop_reason = drop_reason_t.PUNT_RATE;
            }
        }
        if (meta.drop_reason != drop_reason_t.NONE) {
            drops.count((bit<32>)(bit<5>)meta.drop_reason);
        }
    }
}
