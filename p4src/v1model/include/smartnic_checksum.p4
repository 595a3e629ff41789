/* IPv4's header checksum, and that of an advertisement that the NIC makes. */
control ComputeSmartnicChecksum(inout headers_t hdr, inout metadata_t meta) {
    ComputeIpv4Checksum() ipv4;

    apply {
        ipv4.apply(hdr, meta);
        update_checksum(hdr.nd_option.isValid(),
            { hdr.ipv6.src_addr, hdr.ipv6.dst_addr, 16w0, hdr.ipv6.payload_len, 24w0, hdr.ipv6.next_header,
              hdr.nd.type, hdr.nd.code, hdr.nd.router, hdr.nd.solicited, hdr.nd.overrides, hdr.nd._reserved,
              hdr.nd.target_addr, hdr.nd_option.type, hdr.nd_option.length, hdr.nd_option.mac },
            hdr.nd.checksum, HashAlgorithm.csum16);
    }
}
