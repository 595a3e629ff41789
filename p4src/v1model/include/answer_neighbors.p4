/* Answers the host's questions for MAC addresses (ARP, neighbor solicitation), so that it needs no other neighbor.
 * Reads hdr.arp and hdr.nd; turns the question into the answer and sends it back, or leaves it to be dropped. */
control AnswerNeighbors(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    mac_addr_t mac = 0;

    @id(0x010000b0) @brief("Frames for this address go to this MAC address.")
    action answer(mac_addr_t mac_addr) {
        mac = mac_addr;
        meta.answered = true;
    }

    @id(0x010000b1) @brief("Nobody answers: the address is the host's own.")
    action keep_silent() { }

    @id(0x020000b0) @brief("Which IPv4 addresses the NIC answers for.")
    table answer_ipv4 {
        key = { hdr.arp.target_addr: lpm @name("target_addr"); }
        actions = { answer; keep_silent; }
        const default_action = keep_silent();
        size = ANSWER_SIZE;
    }

    @id(0x020000b1) @brief("Which IPv6 addresses the NIC answers for.")
    table answer_ipv6 {
        key = { hdr.nd.target_addr: lpm @name("target_addr"); }
        actions = { answer; keep_silent; }
        const default_action = keep_silent();
        size = ANSWER_SIZE;
    }

    @hidden action send_back() {
        hdr.ethernet.dst_addr = hdr.ethernet.src_addr;
        hdr.ethernet.src_addr = mac;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    @hidden action make_reply() {
        ipv4_addr_t asked = hdr.arp.target_addr;
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_addr = hdr.arp.sender_addr;
        hdr.arp.sender_mac = mac;
        hdr.arp.sender_addr = asked;
    }

    @hidden action make_advertisement() {
        hdr.ipv6.dst_addr = hdr.ipv6.src_addr;
        hdr.ipv6.src_addr = hdr.nd.target_addr;
        hdr.ipv6.payload_len = 32;
        hdr.ipv6.hop_limit = 255;
        hdr.nd.type = ND_ADVERTISEMENT;
        hdr.nd.code = 0;
        hdr.nd.router = 1;
        hdr.nd.solicited = 1;
        hdr.nd.overrides = 1;
        hdr.nd._reserved = 0;
        hdr.nd_option.setValid();
        hdr.nd_option.type = 2;
        hdr.nd_option.length = 1;
        hdr.nd_option.mac = mac;
        truncate(ND_FRAME_LENGTH);
    }

    apply {
        if (hdr.arp.isValid()) {
            // a probe for a duplicate address has no sender yet
            if (hdr.arp.operation == ARP_REQUEST && hdr.arp.sender_addr != 0) {
                answer_ipv4.apply();
            }
            if (meta.answered) {
                make_reply();
                send_back();
            }
        } else if (hdr.nd.isValid()) {
            if (hdr.ipv6.src_addr != 0 && hdr.ipv6.hop_limit == 255) {
                answer_ipv6.apply();
            }
            if (meta.answered) {
                make_advertisement();
                send_back();
            }
        }
    }
}
