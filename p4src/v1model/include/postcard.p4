/* Postcards: copies for the controller of some packets that left a deep queue, with the depth and how long they waited.
 * Reads the queue's depth; clones the packet, and completes the copy when it passes here. */
control Postcard(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bool wanted = false;
    share_t draw = 0;

    @id(0x01000090) @brief("Of packets that leave at least this depth behind, share/65536.")
    action send_postcards(depth_t threshold, share_t share) {
        random(draw, 0, 65535);
        wanted = (depth_t)standard_metadata.deq_qdepth >= threshold && draw < share;
    }

    @id(0x02000090) @brief("Which queues send postcards.")
    table postcard_profile {
        key = {
            standard_metadata.egress_port: exact @name("port");
            meta.traffic_class: exact @name("traffic_class");
        }
        actions = { send_postcards; @defaultonly NoAction; }
        const default_action = NoAction();
        size = POSTCARD_SIZE;
    }

    @hidden action send() {
        meta.postcard.port = standard_metadata.egress_port;
        meta.postcard.queue = meta.queue;
        meta.postcard.traffic_class = meta.traffic_class;
        meta.postcard.enq_depth = (depth_t)standard_metadata.enq_qdepth;
        meta.postcard.deq_depth = (depth_t)standard_metadata.deq_qdepth;
        meta.postcard.waited = standard_metadata.deq_timedelta;
        meta.postcard.time = standard_metadata.egress_global_timestamp;
        clone_preserving_field_list(CloneType.E2E, POSTCARD_SESSION, POSTCARD_FIELDS);
    }

    @hidden action complete() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = meta.postcard.port;
        hdr.packet_in.reason = punt_reason_t.POSTCARD;
        hdr.postcard.setValid();
        hdr.postcard.queue = (bit<8>)meta.postcard.queue;
        hdr.postcard.traffic_class = (bit<8>)meta.postcard.traffic_class;
        hdr.postcard.enq_depth = meta.postcard.enq_depth;
        hdr.postcard.deq_depth = meta.postcard.deq_depth;
        hdr.postcard.waited = meta.postcard.waited;
        hdr.postcard.time = meta.postcard.time;
        truncate(POSTCARD_LENGTH);
    }

    apply {
        if (standard_metadata.instance_type == EGRESS_CLONE) {
            complete();
        } else {
            postcard_profile.apply();
            if (wanted && !meta.dropped_early) {
                send();
            }
        }
    }
}
