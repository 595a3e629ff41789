/* forward_program.c - a hand-written program for tests of the runtime without a P4 compiler.
 *
 * It sends a packet that came in on port N out of port N ^ 1, unless the packet's first byte asks for something else:
 *   'P' n  in egress queue n             'Q'    egress writes enq_qdepth and deq_qdepth into bytes 2 and 3
 *   'C'    to port 510                   'D'    dropped in ingress              'E'  dropped in egress
 *   'M' n  n copies, one by one          'R'    resubmitted for ever            'A' n  recirculated n times
 *   'L'    cloned in egress for ever     'B'    resubmitted and cloned for ever 'X'  bytes 1..8: sw_random()
 */
#include "sw.h"

#define CPU_PORT 510

typedef struct {
    uint32_t enq_qdepth;
    uint8_t op, arg;
} phv_t;

static phv_t *fields(sw_pkt *pkt) { return pkt->phv; }

static void receive(sw_pkt *pkt)
{
    const uint8_t *data = pkt->buf + pkt->off;
    *fields(pkt) = (phv_t){.op = pkt->len > 0 ? data[0] : 0, .arg = pkt->len > 1 ? data[1] : 0};
}

static void enqueue(sw_pkt *pkt, uint32_t port)
{
    fields(pkt)->enq_qdepth = sw_tm_depth(pkt->dev, port, pkt->priority);
    sw_tm_enqueue(pkt, port);
}

static void again(sw_pkt *pkt)
{
    pkt->hops++;
    sw_tm_again(pkt);
}

static void ingress(sw_pkt *pkt)
{
    phv_t *f = fields(pkt);
    sw_pkt *copy;
    uint32_t out = pkt->in_port ^ 1;
    switch (f->op) {
    case 'P':
        pkt->priority = f->arg;
        break;
    case 'C':
        out = CPU_PORT;
        break;
    case 'D':
        sw_pkt_drop(pkt, "as the packet asks");
        return;
    case 'M':
        for (; f->arg > 1; f->arg--)
            if ((copy = sw_pkt_copy(pkt, true)))
                enqueue(copy, out);
        break;
    case 'B':
        if ((copy = sw_pkt_copy(pkt, true)))
            again(copy);
        again(pkt);
        return;
    case 'R':
        again(pkt);
        return;
    }
    enqueue(pkt, out);
}

static void egress(sw_pkt *pkt)
{
    phv_t *f = fields(pkt);
    uint8_t *data = pkt->buf + pkt->off;
    uint64_t random;
    sw_pkt *copy;
    switch (f->op) {
    case 'Q':
        data[2] = (uint8_t)f->enq_qdepth;
        data[3] = (uint8_t)sw_tm_depth(pkt->dev, pkt->egress_port, pkt->priority);
        break;
    case 'E':
        sw_pkt_drop(pkt, "as the packet asks");
        return;
    case 'A':
        if (f->arg--) {
            again(pkt);
            return;
        }
        break;
    case 'L':
        if ((copy = sw_pkt_copy(pkt, true))) {
            copy->hops++;
            enqueue(copy, pkt->egress_port);
        }
        break;
    case 'X':
        random = sw_random(pkt->dev);
        memcpy(data + 1, &random, sizeof random);
        break;
    }
    sw_tm_transmit(pkt, pkt->egress_port);
}

const sw_program sw_the_program = {
    .abi = SW_ABI,
    .name = "forward",
    .phv_size = sizeof(phv_t),
    .receive = receive,
    .ingress = ingress,
    .egress = egress,
};
