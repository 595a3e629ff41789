/* pktgen.c - periodic packets: templates that come in on a port by themselves, past its wire and its faults. */
#include <stdlib.h>

#include "tm_int.h"

#define LATE_MAX 10000000ull /* real time: ns; ticks that are later than this are left out */

static void generator_due(sw_dev *d, sw_timer *t, uint64_t due)
{
    sw_generator *g = (sw_generator *)t; /* its first member */
    if (d->now - due > LATE_MAX)
        due = d->now;
    if (++g->sent != g->cfg.count)
        sw_timer_set(d, t, due + g->cfg.interval_ns);
    if (g->cfg.watches)
        g->data[g->cfg.watched_at] = !d->ports->port[g->cfg.watched_port].info.up;
    sw_pkt *pkt = sw_pkt_from(d, g->cfg.port, g->cfg.data, g->cfg.len);
    if (!pkt)
        return;
    d->stats.received++;
    sw_tm_accept(d, pkt);
}

static void generator_stop(sw_dev *d, uint32_t id)
{
    sw_generator *g = d->tm->generator[id];
    if (!g)
        return;
    sw_timer_cancel(d, &g->timer);
    free(g);
    d->tm->generator[id] = NULL;
}

int sw_pktgen_set(sw_dev *d, uint32_t id, const sw_pktgen *cfg)
{
    if (id >= SW_PKTGENS || cfg->port >= SW_MAX_PORTS || !cfg->interval_ns || cfg->interval_ns > SW_DELAY_MAX ||
        !cfg->len || cfg->len > SW_PACKET_MAX ||
        (cfg->watches && (cfg->watched_port >= SW_MAX_PORTS || cfg->watched_at >= cfg->len)))
        return SW_EINVAL;
    sw_generator *g = calloc(1, sizeof *g + cfg->len);
    if (!g)
        return SW_ENOMEM;
    memcpy(g->data, cfg->data, cfg->len);
    g->timer.fire = generator_due;
    g->cfg = *cfg;
    g->cfg.data = g->data;
    sw_lock_now(d);
    generator_stop(d, id);
    d->tm->generator[id] = g;
    sw_timer_set(d, &g->timer, d->now + cfg->interval_ns);
    sw_unlock_wake(d);
    return SW_OK;
}

int sw_pktgen_clear(sw_dev *d, uint32_t id)
{
    if (id >= SW_PKTGENS)
        return SW_EINVAL;
    sw_lock(d);
    bool there = d->tm->generator[id] != NULL;
    generator_stop(d, id);
    sw_unlock(d);
    return there ? SW_OK : SW_ENOENT;
}

void sw_pktgens_free(sw_dev *d)
{
    for (uint32_t i = 0; i < SW_PKTGENS; i++)
        free(d->tm->generator[i]);
}
