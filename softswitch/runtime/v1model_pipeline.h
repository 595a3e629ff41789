/* v1model_pipeline.h - the v1model architecture as simple_switch runs it: what happens to a packet between the parser,
 * the controls, the traffic manager and the deparser. Included at the end of every generated program, whose phv_t,
 * controls and std_ accessors it uses. The order of the steps is that of BMv2's simple_switch.cpp. */

enum { NORMAL, INGRESS_CLONE, EGRESS_CLONE, COALESCED, RECIRCULATED, REPLICATED, RESUBMITTED }; /* instance_type */

static inline uint64_t v1_ticks(const sw_dev *dev) { return dev->now / dev->cfg.tick_ns ^ SW_UNSPECIFIED; }

static void v1_mark_to_drop(sw_pkt *pkt, phv_t *phv)
{
    std_set_egress_spec(phv, pkt->dev->cfg.drop_port);
    std_set_mcast_grp(phv, 0);
}

/* What a fresh packet, and a copy with headers, has in headers that are not valid: of no promise. */
static void v1_forget_invalid(phv_t *phv)
{
    (void)phv;
#if SW_UNSPECIFIED
    fill_invalid_headers(phv);
#endif
}

static void v1_clear(phv_t *phv)
{
    memset(phv, 0, sizeof(*phv));
    v1_forget_invalid(phv);
}

/* A copy starts without the requests of its original. */
static void v1_clear_requests(sw_pkt *pkt)
{
    pkt->clone_session = pkt->clone_fields = pkt->digest = pkt->resubmit = pkt->recirculate = 0;
    pkt->truncate = UINT32_MAX;
    pkt->exited = false;
}

static void v1_receive(sw_pkt *pkt)
{
    phv_t *phv = pkt->phv;
    v1_clear(phv);
    v1_clear_requests(pkt);
    pkt->hops = 0;
    pkt->packet_length = pkt->ingress_length = pkt->len;
    std_set_ingress_port(phv, pkt->in_port);
    std_set_packet_length(phv, pkt->len);
    std_set_ingress_global_timestamp(phv, v1_ticks(pkt->dev));
}

static void v1_enqueue(sw_pkt *pkt, uint32_t port)
{
    phv_t *phv = pkt->phv;
    uint64_t priority = std_priority(phv);
    if (priority >= pkt->dev->cfg.priorities || port >= SW_MAX_PORTS) {
        sw_pkt_drop(pkt, priority >= pkt->dev->cfg.priorities ? "priority out of range" : "port out of range");
        return;
    }
    pkt->priority = (uint8_t)priority;
    std_set_enq_timestamp(phv, v1_ticks(pkt->dev));
    std_set_enq_qdepth(phv, sw_tm_depth(pkt->dev, port, pkt->priority));
    sw_tm_enqueue(pkt, port);
}

/* One copy of the packet for every replica; consumes the packet. truncate: 0, or the longest length of a copy. */
static void v1_replicate(sw_pkt *pkt, const sw_replicas *to)
{
    for (uint32_t i = 0; i < to->n; i++) {
        sw_pkt *copy = sw_pkt_copy(pkt, true);
        if (!copy)
            break;
        v1_clear_requests(copy);
        v1_forget_invalid(copy->phv);
        if (to->truncate)
            copy->truncate = to->truncate;
        std_set_egress_rid(copy->phv, to->replicas[i].rid);
        v1_enqueue(copy, to->replicas[i].port);
    }
    sw_pkt_free(pkt);
}

/* A packet that enters ingress again: metadata is zero but for the fields of the list. Consumes the original. */
static void v1_again(sw_pkt *pkt, unsigned list, unsigned instance_type)
{
    sw_pkt *copy = sw_pkt_copy(pkt, false);
    if (copy) {
        phv_t *phv = copy->phv;
        v1_clear_requests(copy);
        v1_clear(phv);
        copy_fields(phv, pkt->phv, list);
        std_set_instance_type(phv, instance_type);
        std_set_packet_length(phv, copy->packet_length);
        copy->hops++;
        sw_tm_again(copy);
    }
    sw_pkt_free(pkt);
}

/* clone_ingress_pkt_to_egress: the packet as it came in, parsed again. */
static void v1_clone_ingress(sw_pkt *pkt, uint32_t in_off, uint32_t in_len, uint32_t in_length)
{
    const sw_replicas *to = sw_clone_get(pkt->dev, pkt->clone_session & 0x7fff);
    uint32_t off = pkt->off, len = pkt->len, list = pkt->clone_fields;
    pkt->clone_session = pkt->clone_fields = 0;
    if (!to)
        return;
    pkt->off = in_off;
    pkt->len = in_len;
    sw_pkt *copy = sw_pkt_copy(pkt, false);
    pkt->off = off;
    pkt->len = len;
    if (!copy)
        return;
    phv_t *phv = copy->phv;
    v1_clear_requests(copy);
    copy->packet_length = in_length;
    copy->hops++;
    v1_clear(phv);
    std_set_ingress_port(phv, pkt->in_port);
    parse(copy, phv);
    memset(phv, 0, offsetof(phv_t, end_of_metadata));
    copy_fields(phv, pkt->phv, list);
    std_set_instance_type(phv, INGRESS_CLONE);
    v1_replicate(copy, to);
}

static void v1_clone_egress(sw_pkt *pkt)
{
    const sw_replicas *to = sw_clone_get(pkt->dev, pkt->clone_session & 0x7fff);
    uint32_t list = pkt->clone_fields;
    pkt->clone_session = pkt->clone_fields = 0;
    if (!to)
        return;
    sw_pkt *copy = sw_pkt_copy(pkt, true);
    if (!copy)
        return;
    phv_t *phv = copy->phv;
    v1_clear_requests(copy);
    copy->hops++;
    memset(phv, 0, offsetof(phv_t, end_of_metadata));
    v1_forget_invalid(phv);
    copy_fields(phv, pkt->phv, list);
    std_set_instance_type(phv, EGRESS_CLONE);
    v1_replicate(copy, to);
}

static void v1_ingress(sw_pkt *pkt)
{
    phv_t *phv = pkt->phv;
    uint32_t in_off = pkt->off, in_len = pkt->len, in_length = pkt->packet_length;
    SW_T(pkt, "{\"step\":\"ingress\",\"port\":%u,\"bytes\":%u,\"instance_type\":%u}", pkt->in_port, in_len,
         (unsigned)std_instance_type(phv));
    parse(pkt, phv);
    verify_checksums(pkt, phv);
    std_set_parser_error(phv, pkt->parser_error);
    std_set_checksum_error(phv, pkt->checksum_error);
    if (!pkt->exited)
        control_ingress(pkt, phv);
    pkt->exited = false;

    uint32_t egress_spec = (uint32_t)std_egress_spec(phv), group = (uint32_t)std_mcast_grp(phv);
    if (pkt->clone_session)
        v1_clone_ingress(pkt, in_off, in_len, in_length);
    if (pkt->digest)
        send_digest(pkt, phv);
    if (pkt->resubmit) {
        SW_T(pkt, "{\"step\":\"resubmit\"}");
        pkt->off = in_off;
        pkt->len = in_len;
        pkt->packet_length = in_length;
        v1_again(pkt, pkt->resubmit, RESUBMITTED);
        return;
    }
    if (group) {
        const sw_replicas *to = sw_mcast_get(pkt->dev, group);
        SW_T(pkt, "{\"step\":\"multicast\",\"group\":%u,\"replicas\":%u}", group, to ? to->n : 0);
        if (!to) {
            pkt->dev->stats.unknown_group++;
            sw_pkt_drop(pkt, "unknown multicast group");
            return;
        }
        std_set_instance_type(phv, REPLICATED);
        v1_replicate(pkt, to);
        return;
    }
    if (egress_spec == pkt->dev->cfg.drop_port) {
        sw_pkt_drop(pkt, "dropped in ingress");
        return;
    }
    std_set_instance_type(phv, NORMAL);
    v1_enqueue(pkt, egress_spec);
}

static void v1_egress(sw_pkt *pkt)
{
    phv_t *phv = pkt->phv;
    sw_dev *dev = pkt->dev;
    SW_T(pkt, "{\"step\":\"egress\",\"port\":%u}", pkt->egress_port);
    std_set_egress_global_timestamp(phv, v1_ticks(dev));
    std_set_deq_timedelta(phv, (v1_ticks(dev) - std_enq_timestamp(phv)) ^ SW_UNSPECIFIED);
    std_set_deq_qdepth(phv, sw_tm_depth(dev, pkt->egress_port, pkt->priority));
    std_set_qid(phv, pkt->priority);
    std_set_egress_port(phv, pkt->egress_port);
    std_set_egress_spec(phv, dev->cfg.drop_port + 1);
    std_set_packet_length(phv, pkt->packet_length);
    control_egress(pkt, phv);
    pkt->exited = false;

    if (pkt->clone_session)
        v1_clone_egress(pkt);
    if (std_egress_spec(phv) == dev->cfg.drop_port) {
        sw_pkt_drop(pkt, "dropped in egress");
        return;
    }
    if (!deparse(pkt, phv)) {
        sw_pkt_drop(pkt, "no room for the headers");
        return;
    }
    if (pkt->recirculate) {
        SW_T(pkt, "{\"step\":\"recirculate\"}");
        pkt->packet_length = pkt->ingress_length = pkt->len;
        v1_again(pkt, pkt->recirculate, RECIRCULATED);
        return;
    }
    if (pkt->len > pkt->truncate)
        pkt->len = pkt->truncate;
    if (pkt->len == 0) {
        sw_pkt_drop(pkt, "empty");
        return;
    }
    SW_T(pkt, "{\"step\":\"transmit\",\"port\":%u,\"bytes\":%u}", pkt->egress_port, pkt->len);
    sw_tm_transmit(pkt, pkt->egress_port);
}
