/* Which traffic class a packet belongs to, and which queue its class uses.
 * Reads meta.dscp (a heartbeat's is DSCP_CONTROL); writes meta.traffic_class, meta.queue and the queue itself. */
control Classify(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x13000020)
    direct_counter(CounterType.packets_and_bytes) traffic_class_counter;

    @id(0x01000020) @brief("The class, and its queue: a larger number is served first.")
    action set_class(traffic_class_t traffic_class, queue_id_t queue) {
        traffic_class_counter.count();
        meta.traffic_class = traffic_class;
        meta.queue = queue;
        standard_metadata.priority = queue;
    }

    @id(0x02000020) @brief("From DSCP to traffic class.")
    table traffic_class {
        key = { meta.dscp: exact @name("dscp"); }
        actions = { set_class; }
        default_action = set_class(traffic_class_t.OTHER, 0);
        counters = traffic_class_counter;
        size = TRAFFIC_CLASS_SIZE;
    }

    apply {
        traffic_class.apply();
    }
}
