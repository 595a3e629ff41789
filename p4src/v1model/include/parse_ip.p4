/* Reads IPv4 or IPv6, and the ports of TCP and UDP. Fragments after the first, and first ones, have no ports: all
 * fragments of a packet hash alike. */
parser ParseIp(packet_in packet, in ether_type_t ether_type, out ipv4_t ipv4, out ipv4_options_t ipv4_options,
               out ipv6_t ipv6, out l4_ports_t l4, inout metadata_t meta) {
    state start {
        transition select(ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: parse_ipv6;
        }
    }

    state parse_ipv4 {
        packet.extract(ipv4);
        verify(ipv4.version == 4 && ipv4.ihl >= 5, error.HeaderTooShort);
        meta.dscp = ipv4.dscp;
        meta.protocol = ipv4.protocol;
        transition select(ipv4.ihl) {
            5: parse_ipv4_payload;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(ipv4_options, ((bit<32>)ipv4.ihl - 5) << 5);
        transition parse_ipv4_payload;
    }

    state parse_ipv4_payload {
        transition select(ipv4.flags, ipv4.fragment_offset, ipv4.protocol) {
            (0 &&& 1, 0, PROTOCOL_TCP): parse_l4;
            (0 &&& 1, 0, PROTOCOL_UDP): parse_l4;
            default: accept;
        }
    }

    state parse_ipv6 {
        packet.extract(ipv6);
        meta.dscp = ipv6.dscp;
        meta.protocol = ipv6.next_header;
        transition select(ipv6.next_header) {
            PROTOCOL_TCP: parse_l4;
            PROTOCOL_UDP: parse_l4;
            default: accept;
        }
    }

    state parse_l4 {
        packet.extract(l4);
        meta.l4_src_port = l4.src_port;
        meta.l4_dst_port = l4.dst_port;
        transition accept;
    }
}
