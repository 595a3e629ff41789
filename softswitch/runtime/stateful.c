/* stateful.c - counters, meters and registers. Bytes are those of the packet as it was received, as in BMv2. */
#include <stdlib.h>

#include "table_int.h"

typedef struct {
    uint64_t packets, bytes;
} counter_cell;

struct sw_state {
    counter_cell **counters; /* NULL for direct ones, which lie in their entries */
    sw_meter **meters;
    sw_register *registers;
};

/* ---- packets --------------------------------------------------------------------------------------- */

void sw_count(sw_pkt *pkt, uint32_t counter, uint64_t index)
{
    sw_dev *dev = pkt->dev;
    if (index >= dev->prog->counters[counter].size) {
        dev->stats.index_errors++;
        return;
    }
    counter_cell *c = dev->state->counters[counter] + index;
    c->packets++;
    c->bytes += pkt->ingress_length;
}

static double refill(double tokens, double rate, double burst, uint64_t ns)
{
    tokens += (double)ns * rate / 1e9;
    return tokens < burst ? tokens : burst;
}

/* BMv2's two buckets: a packet that the peak bucket cannot pay is red and costs nothing; one that only the committed
 * bucket cannot pay is yellow and costs peak tokens. Of a one-rate meter there is the committed bucket only. */
static uint32_t meter_run(sw_pkt *pkt, const sw_meter_desc *desc, sw_meter *m)
{
    if (!m->configured)
        return 0;
    uint64_t now = pkt->dev->now, ns = now > m->last_ns ? now - m->last_ns : 0;
    double cost = desc->bytes ? pkt->ingress_length : 1;
    m->last_ns = now;
    m->ctokens = refill(m->ctokens, m->cir, m->cburst, ns);
    m->ptokens = refill(m->ptokens, m->pir, m->pburst, ns);
    if (desc->rates > 1) {
        if (m->ptokens < cost)
            return 2;
        m->ptokens -= cost;
    }
    if (m->ctokens < cost)
        return 1;
    m->ctokens -= cost;
    return 0;
}

uint32_t sw_meter_run(sw_pkt *pkt, uint32_t meter, uint64_t index)
{
    const sw_meter_desc *desc = pkt->dev->prog->meters + meter;
    if (index >= desc->size) {
        pkt->dev->stats.index_errors++;
        return 0;
    }
    return meter_run(pkt, desc, pkt->dev->state->meters[meter] + index);
}

uint32_t sw_meter_run_direct(sw_pkt *pkt, uint32_t meter, sw_entry *entry)
{
    return meter_run(pkt, pkt->dev->prog->meters + meter, &entry->meter);
}

void *sw_register_cell(sw_pkt *pkt, uint32_t reg, uint64_t index)
{
    const sw_register *r = pkt->dev->state->registers + reg;
    if (index >= r->size) {
        pkt->dev->stats.index_errors++;
        return NULL;
    }
    return (uint8_t *)r->cells + index * r->stride;
}

/* ---- control: counters ----------------------------------------------------------------------------- */

static int counter_cell_of(sw_dev *dev, uint32_t counter, uint64_t index, counter_cell **cell)
{
    if (counter >= dev->prog->n_counters || !dev->state->counters[counter])
        return SW_ENOENT;
    if (index >= dev->prog->counters[counter].size)
        return SW_EINVAL;
    *cell = dev->state->counters[counter] + index;
    return SW_OK;
}

int sw_counter_get(sw_dev *dev, uint32_t counter, uint64_t index, uint64_t *packets, uint64_t *bytes)
{
    counter_cell *c;
    int err = counter_cell_of(dev, counter, index, &c);
    if (err)
        return err;
    sw_lock(dev);
    *packets = c->packets;
    *bytes = c->bytes;
    sw_unlock(dev);
    return SW_OK;
}

int sw_counter_set(sw_dev *dev, uint32_t counter, uint64_t index, uint64_t packets, uint64_t bytes)
{
    counter_cell *c;
    int err = counter_cell_of(dev, counter, index, &c);
    if (err)
        return err;
    sw_lock(dev);
    *c = (counter_cell){packets, bytes};
    sw_unlock(dev);
    return SW_OK;
}

/* ---- control: meters ------------------------------------------------------------------------------- */

/* As in BMv2, a configured meter starts with full buckets, and the peak rate must not be below the committed one. */
static int meter_configure(sw_dev *dev, const sw_meter_desc *desc, sw_meter *m, const sw_meter_config *c, uint64_t now)
{
    bool good = c->cir >= 0 && c->cburst >= 0 && (desc->rates < 2 || (c->pir >= c->cir && c->pburst >= 0));
    if (c->configured && !good)
        return SW_EINVAL;
    sw_lock(dev);
    *m = (sw_meter){0};
    if (c->configured)
        *m = (sw_meter){true, c->cir, c->pir, c->cburst, c->pburst, c->cburst, c->pburst, now};
    sw_unlock(dev);
    return SW_OK;
}

static void meter_config(sw_dev *dev, const sw_meter *m, sw_meter_config *c)
{
    sw_lock(dev);
    *c = (sw_meter_config){m->cir, m->cburst, m->pir, m->pburst, m->configured};
    sw_unlock(dev);
}

static int meter_of(sw_dev *dev, uint32_t meter, uint64_t index, sw_meter **m)
{
    if (meter >= dev->prog->n_meters || !dev->state->meters[meter])
        return SW_ENOENT;
    if (index >= dev->prog->meters[meter].size)
        return SW_EINVAL;
    *m = dev->state->meters[meter] + index;
    return SW_OK;
}

int sw_meter_get(sw_dev *dev, uint32_t meter, uint64_t index, sw_meter_config *config)
{
    sw_meter *m;
    int err = meter_of(dev, meter, index, &m);
    if (!err)
        meter_config(dev, m, config);
    return err;
}

int sw_meter_set(sw_dev *dev, uint32_t meter, uint64_t index, const sw_meter_config *config)
{
    uint64_t now = sw_now(dev);
    sw_meter *m;
    int err = meter_of(dev, meter, index, &m);
    return err ? err : meter_configure(dev, dev->prog->meters + meter, m, config, now);
}

/* The direct meter of an entry; with the writer mutex held. */
static sw_meter *entry_meter(sw_dev *dev, uint32_t table, uint64_t handle)
{
    sw_entry *e = sw_table_entry(dev, table, handle);
    return e && dev->prog->tables[table].direct_meter >= 0 ? &e->meter : NULL;
}

int sw_entry_meter_get(sw_dev *dev, uint32_t table, uint64_t handle, sw_meter_config *config)
{
    sw_write_begin(dev);
    const sw_meter *m = entry_meter(dev, table, handle);
    if (m)
        meter_config(dev, m, config);
    return sw_write_end(dev, m ? SW_OK : SW_ENOENT);
}

int sw_entry_meter_set(sw_dev *dev, uint32_t table, uint64_t handle, const sw_meter_config *config)
{
    uint64_t now = sw_now(dev);
    sw_write_begin(dev);
    sw_meter *m = entry_meter(dev, table, handle);
    int err = SW_ENOENT;
    if (m)
        err = meter_configure(dev, dev->prog->meters + dev->prog->tables[table].direct_meter, m, config, now);
    return sw_write_end(dev, err);
}

/* ---- control: registers ---------------------------------------------------------------------------- */

static int cell_of(sw_dev *dev, uint32_t reg, uint64_t index, uint8_t **cell)
{
    if (reg >= dev->prog->n_registers)
        return SW_ENOENT;
    const sw_register *r = dev->state->registers + reg;
    if (index >= r->size)
        return SW_EINVAL;
    *cell = (uint8_t *)r->cells + index * r->stride;
    return SW_OK;
}

int sw_register_get(sw_dev *dev, uint32_t reg, uint64_t index, uint8_t *value)
{
    uint8_t *cell;
    int err = cell_of(dev, reg, index, &cell);
    if (err)
        return err;
    uint32_t nbytes = (dev->prog->registers[reg].width + 7) / 8;
    sw_lock(dev);
    for (uint32_t b = 0; b < nbytes; b++)
        value[b] = cell[nbytes - 1 - b];
    sw_unlock(dev);
    return SW_OK;
}

int sw_register_set(sw_dev *dev, uint32_t reg, uint64_t index, const uint8_t *value)
{
    uint8_t *cell;
    int err = cell_of(dev, reg, index, &cell);
    if (err)
        return err;
    uint32_t width = dev->prog->registers[reg].width, nbytes = (width + 7) / 8;
    if (value[0] & ~sw_top_byte(width))
        return SW_EINVAL;
    sw_lock(dev);
    memset(cell, 0, dev->state->registers[reg].stride);
    for (uint32_t b = 0; b < nbytes; b++)
        cell[b] = value[nbytes - 1 - b];
    sw_unlock(dev);
    return SW_OK;
}

/* ---- making and ending ----------------------------------------------------------------------------- */

int sw_state_init(sw_dev *dev)
{
    const sw_program *prog = dev->prog;
    struct sw_state *s = dev->state = calloc(1, sizeof *s);
    if (!s)
        return SW_ENOMEM;
    s->counters = calloc(prog->n_counters + 1, sizeof *s->counters);
    s->meters = calloc(prog->n_meters + 1, sizeof *s->meters);
    s->registers = calloc(prog->n_registers + 1, sizeof *s->registers);
    bool ok = s->counters && s->meters && s->registers;
    for (uint32_t i = 0; ok && i < prog->n_counters; i++)
        if (!prog->counters[i].is_direct)
            ok = (s->counters[i] = calloc(prog->counters[i].size + 1u, sizeof(counter_cell)));
    for (uint32_t i = 0; ok && i < prog->n_meters; i++)
        if (!prog->meters[i].is_direct)
            ok = (s->meters[i] = calloc(prog->meters[i].size + 1u, sizeof(sw_meter)));
    for (uint32_t i = 0; ok && i < prog->n_registers; i++) {
        sw_register *r = s->registers + i;
        r->size = prog->registers[i].size;
        r->width = prog->registers[i].width;
        r->stride = r->width > 64 ? (r->width + 63) / 64 * 8 : 8;
        ok = (r->cells = calloc((size_t)r->size + 1, r->stride)); /* calloc aligns to 16 bytes, as u128 needs */
    }
    return ok ? SW_OK : SW_ENOMEM;
}

void sw_state_free(sw_dev *dev)
{
    struct sw_state *s = dev->state;
    if (!s)
        return;
    for (uint32_t i = 0; s->counters && i < dev->prog->n_counters; i++)
        free(s->counters[i]);
    for (uint32_t i = 0; s->meters && i < dev->prog->n_meters; i++)
        free(s->meters[i]);
    for (uint32_t i = 0; s->registers && i < dev->prog->n_registers; i++)
        free(s->registers[i].cells);
    free(s->counters);
    free(s->meters);
    free(s->registers);
    free(s);
    dev->state = NULL;
}
