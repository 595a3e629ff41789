/* fault.c - an imperfect wire, per port and direction.
 *
 * A packet meets, in this order: down, burst loss, loss, corruption, duplication, rate cap, delay. Each port and
 * direction draws from a random stream of its own, so a fault on one wire changes nothing elsewhere. A cap's queue
 * holds CAP_PACKETS and obeys a new rate at once; a packet that is delayed arrives when it was going to, whatever is
 * set meanwhile, and a wire holds DELAY_PACKETS of them.
 */
#include <stdlib.h>

#include "tm_int.h"

#define CAP_PACKETS 1000
#define DELAY_PACKETS 16384

typedef struct sw_fault_line {
    sw_timer timer; /* when the cap lets the next packet go */
    sw_fault cfg;
    uint32_t port;
    sw_dir dir;
    bool active; /* something is set, or packets wait for the cap */
    bool bad;    /* Gilbert's state */
    uint32_t delayed;
    sw_shaper cap;
    sw_fifo waiting;
    uint64_t rng[4];
} sw_fault_line;

bool sw_fault_active(const sw_fault_line *l) { return l && l->active; }

static bool is_none(const sw_fault *f)
{
    return f->loss == 0 && f->burst_enter == 0 && f->corrupt == 0 && f->duplicate == 0 && !f->delay_ns &&
           !f->jitter_ns && !f->rate_bps && !f->down;
}

static bool chance(sw_fault_line *l, double p) { return p > 0 && (double)(sw_xoshiro(l->rng) >> 11) * 0x1p-53 < p; }

/* Uniform in 0..n-1. */
static uint64_t below(sw_fault_line *l, uint64_t n) { return (uint64_t)((u128)sw_xoshiro(l->rng) * n >> 64); }

static void deliver(sw_dev *d, sw_fault_line *l, sw_pkt *pkt)
{
    if (l->dir == SW_RX) {
        sw_tm_accept(d, pkt);
    } else {
        sw_port_send(d, l->port, pkt->buf + pkt->off, pkt->len);
        sw_pkt_free(pkt);
    }
}

static void lose(sw_dev *d, sw_fault_line *l, sw_pkt *pkt)
{
    d->ports->port[l->port].info.fault_drops++;
    sw_pkt_end(pkt, l->dir == SW_RX ? "lost by a fault of the ingress port" : "lost by a fault of the egress port");
}

static void delay_due(sw_dev *d, sw_timer *t, uint64_t due)
{
    (void)due;
    sw_slot *slot = (sw_slot *)t; /* its first member */
    slot->line->delayed--;
    deliver(d, slot->line, &slot->pkt);
}

static void delay(sw_dev *d, sw_fault_line *l, sw_pkt *pkt, uint64_t from)
{
    uint64_t wait = l->cfg.delay_ns + (l->cfg.jitter_ns ? below(l, l->cfg.jitter_ns + 1) : 0);
    if (!wait) {
        deliver(d, l, pkt);
        return;
    }
    if (l->delayed == DELAY_PACKETS) {
        lose(d, l, pkt);
        return;
    }
    sw_slot *slot = sw_slot_of(pkt);
    l->delayed++;
    slot->line = l;
    slot->timer.fire = delay_due;
    sw_timer_set(d, &slot->timer, from + wait);
}

static void cap_due(sw_dev *d, sw_timer *t, uint64_t due)
{
    sw_fault_line *l = (sw_fault_line *)t; /* its first member */
    sw_pkt *pkt = sw_fifo_get(&l->waiting);
    sw_shaper_charge(&l->cap, due, sw_bit_units(pkt->len));
    if (l->waiting.n)
        sw_timer_set(d, t, sw_shaper_ready(&l->cap) > due ? sw_shaper_ready(&l->cap) : due);
    else
        l->active = !is_none(&l->cfg);
    delay(d, l, pkt, due);
}

static void cap(sw_dev *d, sw_fault_line *l, sw_pkt *pkt)
{
    if (!l->cfg.rate_bps && !l->waiting.n) {
        delay(d, l, pkt, d->now);
    } else if (l->waiting.n >= CAP_PACKETS) {
        lose(d, l, pkt);
    } else {
        sw_fifo_put(&l->waiting, pkt);
        if (!l->timer.pos)
            sw_timer_set(d, &l->timer, sw_shaper_ready(&l->cap) > d->now ? sw_shaper_ready(&l->cap) : d->now);
    }
}

/* Whether the wire's loss takes the next packet; the burst state moves with every packet. */
static bool loses(sw_fault_line *l)
{
    if (l->cfg.down)
        return true;
    if (chance(l, l->bad ? l->cfg.burst_exit : l->cfg.burst_enter))
        l->bad = !l->bad;
    return l->bad || chance(l, l->cfg.loss);
}

void sw_fault_pass(sw_dev *d, sw_fault_line *l, sw_pkt *pkt)
{
    sw_port_info *info = &d->ports->port[l->port].info;
    if (loses(l)) {
        lose(d, l, pkt);
        return;
    }
    if (pkt->len && chance(l, l->cfg.corrupt)) {
        uint64_t bit = below(l, (uint64_t)pkt->len * 8);
        pkt->buf[pkt->off + bit / 8] ^= (uint8_t)(1u << bit % 8);
        info->fault_corrupt++;
    }
    if (chance(l, l->cfg.duplicate)) {
        sw_pkt *twin = sw_pkt_copy(pkt, false);
        if (twin) {
            info->fault_duplicates++;
            cap(d, l, pkt);
            pkt = twin;
        }
    }
    cap(d, l, pkt);
}

/* ---- control ------------------------------------------------------------------------------------------ */

static bool is_probability(double p) { return p >= 0 && p <= 1; } /* false for NaN */

static bool is_valid(const sw_fault *f)
{
    return is_probability(f->loss) && is_probability(f->burst_enter) && is_probability(f->burst_exit) &&
           is_probability(f->corrupt) && is_probability(f->duplicate) && f->delay_ns <= SW_DELAY_MAX &&
           f->jitter_ns <= SW_DELAY_MAX && f->rate_bps <= SW_RATE_MAX;
}

static void line_set(sw_dev *d, sw_fault_line *l, const sw_fault *f)
{
    l->cfg = *f;
    if (f->burst_enter == 0)
        l->bad = false;
    sw_shaper_set(&l->cap, f->rate_bps);
    if (l->waiting.n)
        sw_timer_set(d, &l->timer, sw_shaper_ready(&l->cap) > d->now ? sw_shaper_ready(&l->cap) : d->now);
    l->active = !is_none(f) || l->waiting.n;
}

static sw_fault_line *line_new(sw_dev *d, uint32_t port, sw_dir dir)
{
    sw_fault_line *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->timer.fire = cap_due;
    l->port = port;
    l->dir = dir;
    sw_seed(l->rng, d->cfg.seed ^ (0xfa017ull << 32 | port << 1 | dir));
    return l;
}

static sw_fault_line *line_get(sw_dev *d, uint32_t port, sw_dir dir)
{
    sw_tm_port *p = sw_tm_port_get(d, port);
    if (p && !p->line[dir])
        p->line[dir] = line_new(d, port, dir);
    return p ? p->line[dir] : NULL;
}

int sw_fault_set(sw_dev *d, uint32_t port, sw_dir dir, const sw_fault *f)
{
    if (port >= SW_MAX_PORTS || (dir != SW_RX && dir != SW_TX) || !is_valid(f))
        return SW_EINVAL;
    sw_lock_now(d);
    sw_fault_line *l = line_get(d, port, dir);
    if (l)
        line_set(d, l, f);
    sw_unlock_wake(d);
    return l ? SW_OK : SW_ENOMEM;
}

int sw_fault_get(sw_dev *d, uint32_t port, sw_dir dir, sw_fault *f)
{
    if (port >= SW_MAX_PORTS || (dir != SW_RX && dir != SW_TX))
        return SW_EINVAL;
    sw_lock(d);
    sw_tm_port *p = d->tm->port[port];
    *f = p && p->line[dir] ? p->line[dir]->cfg : (sw_fault){0};
    sw_unlock(d);
    return SW_OK;
}

int sw_faults_clear(sw_dev *d)
{
    sw_lock_now(d);
    for (uint32_t i = 0; i < SW_MAX_PORTS; i++)
        for (uint32_t dir = SW_RX; d->tm->port[i] && dir <= SW_TX; dir++)
            if (d->tm->port[i]->line[dir])
                line_set(d, d->tm->port[i]->line[dir], &(sw_fault){0});
    sw_unlock_wake(d);
    return SW_OK;
}

void sw_fault_line_free(sw_fault_line *l) { free(l); }
