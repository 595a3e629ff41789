/* The hash of the five-tuple that keeps a flow on one path.
 * Reads addresses, protocol and ports; writes meta.flow_hash. */
control FlowHash(inout headers_t hdr, inout metadata_t meta) {
    apply {
        if (hdr.ipv4.isValid()) {
            hash(meta.flow_hash, HashAlgorithm.crc32, (bit<32>)0,
                { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, meta.protocol, meta.l4_src_port, meta.l4_dst_port },
                (bit<64>)0x100000000);
        } else {
            hash(meta.flow_hash, HashAlgorithm.crc32, (bit<32>)0,
                { hdr.ipv6.src_addr, hdr.ipv6.dst_addr, meta.protocol, meta.l4_src_port, meta.l4_dst_port },
                (bit<64>)0x100000000);
        }
    }
}
