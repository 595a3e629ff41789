/* Packets from the controller, heartbeats and timers, IP. */
parser FabricParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    ParseIp() ip;

    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ip;
            ETHERTYPE_IPV6: parse_ip;
            ETHERTYPE_HEARTBEAT: parse_heartbeat;
            ETHERTYPE_TIMER: parse_timer;
            default: accept;
        }
    }

    state parse_heartbeat {
        packet.extract(hdr.heartbeat);
        meta.dscp = DSCP_CONTROL;
        transition accept;
    }

    state parse_timer {
        packet.extract(hdr.timer);
        meta.dscp = DSCP_CONTROL;
        transition accept;
    }

    state parse_ip {
        ip.apply(packet, hdr.ethernet.ether_type, hdr.ipv4, hdr.ipv4_options, hdr.ipv6, hdr.l4, meta);
        transition accept;
    }
}

/* packet_out stays behind. */
control FabricDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.postcard);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.timer);
        packet.emit(hdr.heartbeat);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.l4);
    }
}
