/* Packets from the controller, heartbeats and timers, IP, and the host's questions for MAC addresses. */
parser SmartnicParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
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
            ETHERTYPE_ARP: parse_arp;
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

    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    state parse_ip {
        ip.apply(packet, hdr.ethernet.ether_type, hdr.ipv4, hdr.ipv4_options, hdr.ipv6, hdr.l4, meta);
        transition select(hdr.ethernet.ether_type, meta.protocol) {
            (ETHERTYPE_IPV6, PROTOCOL_ICMPV6): parse_icmpv6;
            default: accept;
        }
    }

    state parse_icmpv6 {
        transition select(packet.lookahead<bit<8>>()) {
            ND_SOLICITATION: parse_nd;
            default: accept;
        }
    }

    state parse_nd {
        packet.extract(hdr.nd);
        transition accept;
    }
}

/* packet_out stays behind. */
control SmartnicDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.timer);
        packet.emit(hdr.heartbeat);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.nd);
        packet.emit(hdr.nd_option);
        packet.emit(hdr.l4);
    }
}
