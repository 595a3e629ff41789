/* Counts what goes out on each link, and completes heartbeats with it. It comes after the queue, so that a heartbeat
 * that overtook data does not count that data as sent. Reads and writes this control's registers, hdr.heartbeat. */
control LinkStamp(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    // indexed by port, written here
    register<packet_count_t, port_index_t>(PORTS) tx_packets;
    register<bit<32>, port_index_t>(PORTS) tx_sequence;

    packet_count_t sent = 0;
    bit<32> sequence = 0;

    @hidden action count_sent() {
        tx_packets.read(sent, (port_index_t)standard_metadata.egress_port);
        sent = sent + 1;
        tx_packets.write((port_index_t)standard_metadata.egress_port, sent);
    }

    @hidden action stamp() {
        tx_sequence.read(sequence, (port_index_t)standard_metadata.egress_port);
        sequence = sequence + 1;
        tx_sequence.write((port_index_t)standard_metadata.egress_port, sequence);
        hdr.heartbeat.sequence = sequence;
        hdr.heartbeat.tx_packets = sent;
        hdr.heartbeat.time = standard_metadata.egress_global_timestamp;
    }

    apply {
        count_sent();
        if (hdr.heartbeat.isValid()) {
            stamp();
        }
    }
}
