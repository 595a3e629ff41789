/* The depth of every queue as its last packet left it, and when that was: egress tells ingress.
 * Indexed by port and queue; written by SampleDepth, read by ChooseMember. */
register<depth_t, queue_index_t>(QUEUES) queue_depth;
register<ticks_t, queue_index_t>(QUEUES) queue_depth_time;

control SampleDepth(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        queue_depth.write((queue_index_t)(standard_metadata.egress_port[5:0] ++ meta.queue),
                          (depth_t)standard_metadata.deq_qdepth);
        queue_depth_time.write((queue_index_t)(standard_metadata.egress_port[5:0] ++ meta.queue),
                               standard_metadata.egress_global_timestamp);
    }
}
