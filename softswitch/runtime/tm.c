/* tm.c - the traffic manager: egress queues, and what has to be done when.
 *
 * A packet never calls into the next pipeline directly: ingress leaves it in a list or a queue, and sw_tm_settle and
 * sw_tm_run take it from there. So nothing recurses, however a program clones and recirculates.
 *
 * A queue without a rate (and on a port without one) holds nothing: its packets go to egress in the same instant, in
 * the order they came, whatever their priority. All others wait in their queue, the highest priority that may send
 * goes first, and a rate that is set takes effect at once, also for packets that wait. A packet leaves when its
 * queue's and its port's last one have had their time; that is when its first bit is sent.
 */
#include <stdlib.h>

#include "tm_int.h"

#define DEFAULT_DEPTH 64     /* packets, as BMv2 */
#define HOPS_MAX 10000       /* virtual time: passes of one packet within an instant */
#define SPENT_MAX 250000     /* virtual time: passes of all looping packets within an instant */
#define LOOPING_MAX 4096     /* real time: looping packets that wait for their next pass */
#define TIMERS_PER_RUN 256   /* real time: then the ports have their turn */
#define SWEEP_NS SW_SECOND

/* ---- egress queues ------------------------------------------------------------------------------------ */

static void port_due(sw_dev *, sw_timer *, uint64_t due);

sw_tm_port *sw_tm_port_get(sw_dev *d, uint32_t port)
{
    sw_tm_port *p = d->tm->port[port];
    if (p)
        return p;
    p = calloc(1, sizeof *p + d->cfg.priorities * sizeof p->queue[0]);
    if (!p)
        return NULL;
    p->timer.fire = port_due;
    p->port = port;
    for (uint32_t i = 0; i < d->cfg.priorities; i++)
        p->queue[i].cfg.depth_packets = DEFAULT_DEPTH;
    return d->tm->port[port] = p;
}

/* In virtual time a packet may loop only so often without time passing. In real time it may, once per sw_tm_run; but
 * packets that multiply must not take the whole pool. */
static bool loops_for_ever(sw_dev *d, const sw_pkt *pkt)
{
    if (!pkt->hops)
        return false;
    if (d->cfg.realtime)
        return d->tm->again.n + d->tm->ready.n >= LOOPING_MAX;
    return pkt->hops > HOPS_MAX || ++d->tm->spent > SPENT_MAX;
}

static void drop_loop(sw_pkt *pkt)
{
    pkt->dev->stats.loop_drops++;
    sw_pkt_end(pkt, "loops for ever");
}

static uint64_t ready_time(const sw_queue *q)
{
    uint64_t pps = sw_shaper_ready(&q->pps), bps = sw_shaper_ready(&q->bps);
    return pps > bps ? pps : bps;
}

/* When the port may send the next of its waiting packets; UINT64_MAX: none waits. */
static uint64_t port_next(const sw_tm_port *p, uint32_t priorities)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < priorities; i++)
        if (p->queue[i].waiting.n && ready_time(&p->queue[i]) < next)
            next = ready_time(&p->queue[i]);
    uint64_t port = sw_shaper_ready(&p->rate);
    return next < port ? port : next;
}

/* At `from` or later. */
static void port_schedule(sw_dev *d, sw_tm_port *p, uint64_t from)
{
    uint64_t next = port_next(p, d->cfg.priorities);
    if (next == UINT64_MAX)
        sw_timer_cancel(d, &p->timer);
    else
        sw_timer_set(d, &p->timer, next > from ? next : from);
}

static uint32_t queued_length(const sw_pkt *pkt)
{
    return pkt->packet_length < pkt->truncate ? pkt->packet_length : pkt->truncate;
}

static void queue_packet(sw_dev *d, sw_tm_port *p, sw_queue *q, sw_pkt *pkt)
{
    uint32_t len = queued_length(pkt);
    if ((q->cfg.depth_packets && q->waiting.n >= q->cfg.depth_packets) ||
        (q->cfg.depth_bytes && q->stats.depth_bytes + len > q->cfg.depth_bytes)) {
        q->stats.drops++;
        q->stats.drop_bytes += len;
        d->stats.queue_drops++;
        sw_pkt_end(pkt, "queue is full");
        return;
    }
    sw_fifo_put(&q->waiting, pkt);
    q->stats.depth_bytes += len;
    if (q->waiting.n > q->stats.depth_max)
        q->stats.depth_max = q->waiting.n;
    /* A queue whose turn is later than the timer, or whose head was waiting already, changes nothing. */
    uint64_t next = ready_time(q), port = sw_shaper_ready(&p->rate);
    next = next < port ? port : next;
    next = next < d->now ? d->now : next;
    if (q->waiting.n == 1 && (!p->timer.pos || next < d->tm->heap[p->timer.pos].time))
        sw_timer_set(d, &p->timer, next);
}

void sw_tm_enqueue(sw_pkt *pkt, uint32_t port)
{
    sw_dev *d = pkt->dev;
    if (port >= SW_MAX_PORTS) {
        sw_pkt_drop(pkt, "no such egress port");
        return;
    }
    if (loops_for_ever(d, pkt)) {
        drop_loop(pkt);
        return;
    }
    sw_tm_port *p = sw_tm_port_get(d, port);
    if (!p || pkt->priority >= d->cfg.priorities) {
        d->stats.queue_drops++;
        sw_pkt_end(pkt, "no such egress queue");
        return;
    }
    sw_queue *q = &p->queue[pkt->priority];
    pkt->egress_port = port;
    pkt->enqueued_ns = d->now;
    if (q->pps.rate | q->bps.rate | p->rate.rate | q->waiting.n) {
        queue_packet(d, p, q, pkt);
        return;
    }
    q->stats.packets++;
    q->stats.bytes += queued_length(pkt);
    sw_fifo_put(&d->tm->ready, pkt);
}

uint32_t sw_tm_depth(sw_dev *d, uint32_t port, uint32_t priority)
{
    if (port >= SW_MAX_PORTS || priority >= d->cfg.priorities || !d->tm->port[port])
        return 0;
    return d->tm->port[port]->queue[priority].waiting.n;
}

/* The port may send at `due`. Shapers count from there, not from now: a thread that wakes late keeps the rate. */
static void port_due(sw_dev *d, sw_timer *timer, uint64_t due)
{
    sw_tm_port *p = (sw_tm_port *)timer; /* its first member */
    sw_queue *q = NULL;
    if (sw_shaper_ready(&p->rate) <= due)
        for (uint32_t i = d->cfg.priorities; i-- > 0 && !q;)
            if (p->queue[i].waiting.n && ready_time(&p->queue[i]) <= due)
                q = &p->queue[i];
    if (q) {
        sw_pkt *pkt = sw_fifo_get(&q->waiting);
        uint32_t len = queued_length(pkt);
        q->stats.packets++;
        q->stats.bytes += len;
        q->stats.depth_bytes -= len;
        if (d->now > pkt->enqueued_ns)
            pkt->hops = 0; /* time has passed: it does not loop within an instant */
        d->tm->wire_port = p->port;
        d->tm->wire_bytes = 0;
        d->prog->egress(pkt);
        d->tm->wire_port = SW_NO_PORT;
        sw_shaper_charge(&q->pps, due, SW_SECOND);
        sw_shaper_charge(&q->bps, due, sw_bit_units(d->tm->wire_bytes)); /* what egress dropped took no time */
        sw_shaper_charge(&p->rate, due, sw_bit_units(d->tm->wire_bytes));
    }
    port_schedule(d, p, due);
}

void sw_tm_transmit(sw_pkt *pkt, uint32_t port)
{
    sw_dev *d = pkt->dev;
    if (port >= SW_MAX_PORTS) {
        sw_pkt_drop(pkt, "no such egress port");
        return;
    }
    if (port == d->tm->wire_port)
        d->tm->wire_bytes += pkt->len;
    sw_tm_port *p = d->tm->port[port];
    pkt->egress_port = port;
    if (p && sw_fault_active(p->line[SW_TX])) {
        sw_fault_pass(d, p->line[SW_TX], pkt);
        return;
    }
    sw_port_send(d, port, pkt->buf + pkt->off, pkt->len);
    sw_pkt_free(pkt);
}

/* ---- packets on their way in -------------------------------------------------------------------------- */

void sw_tm_accept(sw_dev *d, sw_pkt *pkt)
{
    d->prog->receive(pkt);
    d->prog->ingress(pkt);
}

void sw_tm_receive(sw_dev *d, uint32_t port, const uint8_t *data, uint32_t len)
{
    sw_port *wire = &d->ports->port[port];
    wire->info.rx_packets++;
    wire->info.rx_bytes += len;
    d->stats.received++;
    if (wire->pcap)
        sw_port_tap(d, wire, data, len);
    if (!wire->info.up || len > SW_PACKET_MAX) {
        wire->info.rx_drops++;
        return;
    }
    sw_pkt *pkt = sw_pkt_from(d, port, data, len);
    if (!pkt)
        return;
    sw_tm_port *p = d->tm->port[port];
    if (p && sw_fault_active(p->line[SW_RX]))
        sw_fault_pass(d, p->line[SW_RX], pkt);
    else
        sw_tm_accept(d, pkt);
}

void sw_tm_again(sw_pkt *pkt)
{
    sw_dev *d = pkt->dev;
    if (loops_for_ever(d, pkt)) {
        drop_loop(pkt);
        return;
    }
    if (pkt->len > SW_PACKET_MAX) {
        sw_pkt_drop(pkt, "too long to be recirculated");
        return;
    }
    if (pkt->off != SW_HEADROOM) { /* the next pass needs its headroom, too */
        memmove(pkt->buf + SW_HEADROOM, pkt->buf + pkt->off, pkt->len);
        pkt->off = SW_HEADROOM;
    }
    sw_fifo_put(&d->tm->again, pkt);
}

/* ---- what is due -------------------------------------------------------------------------------------- */

static void again_round(sw_dev *d)
{
    for (uint32_t n = d->tm->again.n; n; n--)
        d->prog->ingress(sw_fifo_get(&d->tm->again));
}

static void ready_round(sw_dev *d)
{
    for (uint32_t n = d->tm->ready.n; n; n--)
        d->prog->egress(sw_fifo_get(&d->tm->ready));
}

void sw_tm_settle(sw_dev *d)
{
    ready_round(d); /* in real time what loops has its turn once per sw_tm_run */
    if (d->cfg.realtime)
        return;
    while (d->tm->again.n | d->tm->ready.n) {
        again_round(d);
        ready_round(d);
    }
}

static uint64_t timer_next(sw_dev *d)
{
    uint64_t digest = sw_digest_next(d);
    return d->tm->heap[1].time < digest ? d->tm->heap[1].time : digest; /* the sweep's timer is always set */
}

uint64_t sw_tm_next(sw_dev *d)
{
    return d->tm->again.n | d->tm->ready.n ? d->now : timer_next(d);
}

static void fire_next(sw_dev *d, uint64_t due)
{
    struct sw_tm *tm = d->tm;
    if (tm->heap[1].time <= due) {
        sw_timer *t = tm->heap[1].timer;
        sw_timer_cancel(d, t);
        t->fire(d, t, due);
    } else {
        sw_digest_sweep(d, due);
    }
}

void sw_tm_run(sw_dev *d, uint64_t now)
{
    uint64_t due;
    d->tm->until = now;
    d->tm->spent = 0;
    if (d->cfg.realtime) {
        d->now = now;
        again_round(d);
    }
    sw_tm_settle(d);
    for (uint32_t n = 0; (due = timer_next(d)) <= now && !(d->cfg.realtime && n == TIMERS_PER_RUN); n++) {
        if (due > d->now) {
            d->now = due;
            d->tm->spent = 0;
        }
        fire_next(d, due);
        sw_tm_settle(d);
    }
    d->now = now;
}

/* Once a second; a jump of virtual time over many hours is crossed in longer steps. */
static void sweep_due(sw_dev *d, sw_timer *t, uint64_t due)
{
    uint64_t step = (d->tm->until - due) / 1024;
    sw_table_sweep(d, d->now);
    sw_timer_set(d, t, due + (step > SWEEP_NS ? step : SWEEP_NS));
}

/* ---- control ------------------------------------------------------------------------------------------ */

static sw_tm_port *control_port(sw_dev *d, uint32_t port, uint32_t priority, int *err)
{
    if (port >= SW_MAX_PORTS || priority >= d->cfg.priorities) {
        *err = SW_EINVAL;
        return NULL;
    }
    sw_tm_port *p = sw_tm_port_get(d, port);
    *err = p ? SW_OK : SW_ENOMEM;
    return p;
}

int sw_queue_set(sw_dev *d, uint32_t port, uint32_t priority, const sw_queue_config *cfg)
{
    if (cfg->rate_pps > SW_RATE_MAX || cfg->rate_bps > SW_RATE_MAX)
        return SW_EINVAL;
    int err;
    sw_lock_now(d);
    sw_tm_port *p = control_port(d, port, priority, &err);
    if (p) {
        sw_queue *q = &p->queue[priority];
        q->cfg = *cfg;
        sw_shaper_set(&q->pps, cfg->rate_pps);
        sw_shaper_set(&q->bps, cfg->rate_bps);
        port_schedule(d, p, d->now);
    }
    sw_unlock_wake(d);
    return err;
}

int sw_queue_get(sw_dev *d, uint32_t port, uint32_t priority, sw_queue_config *cfg)
{
    int err;
    sw_lock(d);
    sw_tm_port *p = control_port(d, port, priority, &err);
    if (p)
        *cfg = p->queue[priority].cfg;
    sw_unlock(d);
    return err;
}

int sw_port_rate_set(sw_dev *d, uint32_t port, uint64_t rate_bps)
{
    if (rate_bps > SW_RATE_MAX)
        return SW_EINVAL;
    int err;
    sw_lock_now(d);
    sw_tm_port *p = control_port(d, port, 0, &err);
    if (p) {
        sw_shaper_set(&p->rate, rate_bps);
        port_schedule(d, p, d->now);
    }
    sw_unlock_wake(d);
    return err;
}

int sw_queue_stats_get(sw_dev *d, uint32_t port, uint32_t priority, sw_queue_stats *stats, bool clear_max)
{
    int err;
    sw_lock(d);
    sw_tm_port *p = control_port(d, port, priority, &err);
    if (p) {
        sw_queue *q = &p->queue[priority];
        *stats = q->stats;
        stats->depth = q->waiting.n;
        if (clear_max)
            q->stats.depth_max = q->waiting.n;
    }
    sw_unlock(d);
    return err;
}

int sw_tm_init(sw_dev *d)
{
    struct sw_tm *tm = d->tm = calloc(1, sizeof *tm);
    if (!tm)
        return SW_ENOMEM;
    tm->wire_port = SW_NO_PORT;
    tm->heap = malloc((SW_HEAP_MAX + 1) * sizeof *tm->heap); /* touched as far as it is used */
    if (!tm->heap)
        return SW_ENOMEM;
    tm->sweep.fire = sweep_due;
    sw_timer_set(d, &tm->sweep, SWEEP_NS);
    return SW_OK;
}

void sw_tm_free(sw_dev *d)
{
    if (!d->tm)
        return;
    sw_pktgens_free(d);
    for (uint32_t i = 0; i < SW_MAX_PORTS; i++) {
        sw_tm_port *p = d->tm->port[i];
        if (!p)
            continue;
        sw_fault_line_free(p->line[SW_RX]);
        sw_fault_line_free(p->line[SW_TX]);
        free(p);
    }
    free(d->tm->heap);
    free(d->tm);
    d->tm = NULL;
}
