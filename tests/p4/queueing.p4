/* What the queue did to a packet, written into the packet. Times differ from run to run, so the request says whether to
 * write them; the depths are exact wherever the order of packets is. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>
#include "include/ethernet.p4"

header request_t {
    bit<3> priority;
    bit<1> want_depths;
    bit<1> want_times;
    bit<3> port;
}

header queue_t {
    bit<32> enq_timestamp; // ticks
    bit<32> deq_timedelta; // ticks
    bit<5> _pad0;
    bit<19> enq_qdepth;    // packets
    bit<5> _pad1;
    bit<19> deq_qdepth;    // packets
    bit<48> ingress_time;  // ticks
    bit<48> egress_time;   // ticks
}

struct headers_t {
    queue_t queue;
    request_t request;
}

struct metadata_t { }

parser QueueingParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control QueueingVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control QueueingIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.request.isValid()) {
            standard_metadata.egress_spec = (port_t)hdr.request.port;
            standard_metadata.priority = hdr.request.priority;
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control QueueingEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.request.isValid()) {
            hdr.queue.setValid();
            hdr.queue.enq_timestamp = 0;
            hdr.queue.deq_timedelta = 0;
            hdr.queue._pad0 = 0;
            hdr.queue.enq_qdepth = 0;
            hdr.queue._pad1 = 0;
            hdr.queue.deq_qdepth = 0;
            hdr.queue.ingress_time = 0;
            hdr.queue.egress_time = 0;
            if (hdr.request.want_depths == 1) {
                hdr.queue.enq_qdepth = standard_metadata.enq_qdepth;
                hdr.queue.deq_qdepth = standard_metadata.deq_qdepth;
            }
            if (hdr.request.want_times == 1) {
                hdr.queue.enq_timestamp = standard_metadata.enq_timestamp;
                hdr.queue.deq_timedelta = standard_metadata.deq_timedelta;
                hdr.queue.ingress_time = standard_metadata.ingress_global_timestamp;
                hdr.queue.egress_time = standard_metadata.egress_global_timestamp;
            }
        }
    }
}

control QueueingComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control QueueingDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.queue);
        packet.emit(hdr.request);
    }
}

V1Switch(QueueingParser(), QueueingVerifyChecksum(), QueueingIngress(), QueueingEgress(), QueueingComputeChecksum(),
         QueueingDeparser()) main;
