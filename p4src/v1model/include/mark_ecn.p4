/* Tells senders of a queue that fills: ECT becomes CE by the depth that this packet left behind in its own queue.
 * CE stays CE, Not-ECT is never marked (and dropped early only where the profile says so), the control class never
 * looks at a profile. Reads the queue's depth and meta.traffic_class; writes the ECN field and counters. */
control MarkEcn(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x12000080) @brief("Packets that left a queue: index port * 8 + queue.")
    counter<queue_index_t>(QUEUES, CounterType.packets_and_bytes) queue_packets;
    @id(0x12000081) @brief("Packets of a queue that were marked here.")
    counter<queue_index_t>(QUEUES, CounterType.packets_and_bytes) queue_marked;
    @id(0x12000082) @brief("Packets of a queue that were dropped early, because they could not be marked.")
    counter<queue_index_t>(QUEUES, CounterType.packets_and_bytes) queue_early_drops;
    @id(0x12000083) @brief("Packets by the depth they left behind: index (port * 8 + queue) * 16 + bits of the depth.")
    counter<bit<32>>(DEPTH_BUCKETS, CounterType.packets) queue_depths;

    depth_t depth = 0;
    queue_index_t queue_index = 0;
    bit<4> bucket = 0;
    bool congested = false;
    bool early_drop = false;
    share_t draw = 0;
    bit<64> drawn = 0;  // draw, scaled to the ramp's length
    bit<64> reached = 0; // how far up the ramp, in the same scale
    ecn_t ecn = ecn_t.NOT_ECT;

    @id(0x01000080) @brief("CE from this depth on.")
    action step(depth_t threshold, bit<1> drop_not_ect) {
        congested = depth >= threshold;
        early_drop = drop_not_ect == 1;
    }

    @id(0x01000081) @brief("Never up to k_min, always from k_max on, in between by a chance that rises to p_max/65536.")
    action ramp(depth_t k_min, depth_t k_max, share_t p_max, bit<1> drop_not_ect) {
        random(draw, 0, 65535);
        drawn = (bit<64>)draw * (bit<64>)(k_max - k_min);
        reached = (bit<64>)p_max * (bit<64>)(depth |-| k_min);
        congested = depth >= k_max || drawn < reached;
        early_drop = drop_not_ect == 1;
    }

    @id(0x02000080) @brief("When to mark.")
    table ecn_profile {
        key = {
            standard_metadata.egress_port: exact @name("port");
            meta.traffic_class: exact @name("traffic_class");
        }
        actions = { step; ramp; @defaultonly NoAction; }
        const default_action = NoAction();
        size = ECN_PROFILE_SIZE;
    }

    @hidden action set_bucket(bit<4> bits) {
        bucket = bits;
    }

    @hidden
    table depth_bits {
        key = { depth: ternary @name("depth"); }
        actions = { set_bucket; }
        const default_action = set_bucket(15);
        const entries = {
            0: set_bucket(0);
            0 &&& 0xfffffffe: set_bucket(1);
            0 &&& 0xfffffffc: set_bucket(2);
            0 &&& 0xfffffff8: set_bucket(3);
            0 &&& 0xfffffff0: set_bucket(4);
            0 &&& 0xffffffe0: set_bucket(5);
            0 &&& 0xffffffc0: set_bucket(6);
            0 &&& 0xffffff80: set_bucket(7);
            0 &&& 0xffffff00: set_bucket(8);
            0 &&& 0xfffffe00: set_bucket(9);
            0 &&& 0xfffffc00: set_bucket(10);
            0 &&& 0xfffff800: set_bucket(11);
            0 &&& 0xfffff000: set_bucket(12);
            0 &&& 0xffffe000: set_bucket(13);
            0 &&& 0xffffc000: set_bucket(14);
        }
    }

    @hidden action mark_ipv4() {
        queue_marked.count(queue_index);
        hdr.ipv4.ecn = ecn_t.CE;
    }

    @hidden action mark_ipv6() {
        queue_marked.count(queue_index);
        hdr.ipv6.ecn = ecn_t.CE;
    }

    @hidden action drop_early() {
        queue_early_drops.count(queue_index);
        mark_to_drop(standard_metadata);
        meta.dropped_early = true;
    }

    apply {
        depth = (depth_t)standard_metadata.deq_qdepth;
        queue_index = (queue_index_t)(standard_metadata.egress_port[5:0] ++ meta.queue);
        depth_bits.apply();
        queue_packets.count(queue_index);
        queue_depths.count(queue_index[27:0] ++ bucket);
        if (meta.traffic_class != traffic_class_t.CONTROL) {
            ecn_profile.apply();
        }
        if (congested) {
            if (hdr.ipv4.isValid()) {
                ecn = hdr.ipv4.ecn;
            } else if (hdr.ipv6.isValid()) {
                ecn = hdr.ipv6.ecn;
            }
            if (ecn == ecn_t.NOT_ECT) {
                if (early_drop) {
                    drop_early();
                }
            } else if (ecn != ecn_t.CE) {
                if (hdr.ipv4.isValid()) {
                    mark_ipv4();
                } else {
                    mark_ipv6();
                }
            }
        }
    }
}
