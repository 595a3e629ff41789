/* The switch: every role (plane switch, leaf, spine) is this program with other entries in its tables.
 *
 * Read the two apply blocks first; every control is in the file of its name in include/. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>
#include "../shared/types.p4"
#include "../shared/constants.p4"
#include "../shared/sizes.p4"
#include "../shared/headers.p4"
#include "include/fabric_types.p4"
#include "include/parse_ip.p4"
#include "include/fabric_parser.p4"
#include "include/checksum.p4"
#include "include/port_role.p4"
#include "include/watch_port.p4"
#include "include/judge_link.p4"
#include "include/link_health.p4"
#include "include/classify.p4"
#include "include/protect.p4"
#include "include/route.p4"
#include "include/flow_hash.p4"
#include "include/queue_depth.p4"
#include "include/select_member.p4"
#include "include/choose_member.p4"
#include "include/rewrite.p4"
#include "include/explain.p4"
#include "include/mark_ecn.p4"
#include "include/link_stamp.p4"
#include "include/postcard.p4"

control FabricIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    PortRole() port_role;
    LinkHealth() link_health;
    Classify() classify;
    Protect() protect;
    Route() route;
    FlowHash() flow_hash;
    ChooseMember() choose_member;
    Rewrite() rewrite;
    Explain() explain;

    apply {
        mark_to_drop(standard_metadata);
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
        } else {
            port_role.apply(hdr, meta, standard_metadata);
            link_health.apply(hdr, meta, standard_metadata);
        }
        classify.apply(meta, standard_metadata);
        if (!hdr.packet_out.isValid() && !hdr.timer.isValid() && !hdr.heartbeat.isValid()) {
            if (meta.drop_reason == drop_reason_t.NONE) {
                protect.apply(hdr, meta, standard_metadata);
            }
            if (meta.drop_reason == drop_reason_t.NONE && meta.punt_reason == punt_reason_t.NONE) {
                route.apply(hdr, meta);
            }
            if (meta.drop_reason == drop_reason_t.NONE && meta.punt_reason == punt_reason_t.NONE) {
                flow_hash.apply(hdr, meta);
                choose_member.apply(hdr, meta, standard_metadata);
            }
            if (meta.drop_reason == drop_reason_t.NONE && meta.punt_reason == punt_reason_t.NONE) {
                rewrite.apply(hdr, meta, standard_metadata);
            }
        }
        explain.apply(hdr, meta, standard_metadata);
    }
}

control FabricEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    SampleDepth() sample_depth;
    MarkEcn() mark_ecn;
    LinkStamp() link_stamp;
    Postcard() postcard;

    apply {
        if (standard_metadata.egress_port < (port_t)PORTS) {
            sample_depth.apply(meta, standard_metadata);
            mark_ecn.apply(hdr, meta, standard_metadata);
            if (!meta.dropped_early) {
                link_stamp.apply(hdr, standard_metadata);
            }
        }
        postcard.apply(hdr, meta, standard_metadata);
    }
}

V1Switch(FabricParser(), VerifyIpv4Checksum(), FabricIngress(), FabricEgress(), ComputeIpv4Checksum(),
         FabricDeparser()) main;
