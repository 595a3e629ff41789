/* device.c - making a device, its packet pool and random numbers; virtual time; the bench. */
#include <stdlib.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p))
#endif

#include "tm_int.h"

/* ---- random numbers: xoshiro256**, seeded by splitmix64 (both public domain, Blackman and Vigna) ------- */

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void sw_seed(uint64_t rng[4], uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        rng[i] = splitmix(&seed);
}

static uint64_t rotl(uint64_t x, int k) { return x << k | x >> (64 - k); }

uint64_t sw_xoshiro(uint64_t rng[4])
{
    uint64_t result = rotl(rng[1] * 5, 7) * 9, t = rng[1] << 17;
    rng[2] ^= rng[0];
    rng[3] ^= rng[1];
    rng[1] ^= rng[2];
    rng[0] ^= rng[3];
    rng[2] ^= t;
    rng[3] = rotl(rng[3], 45);
    return result;
}

uint64_t sw_random(sw_dev *d) { return sw_xoshiro(d->rng); }

/* ---- packets ------------------------------------------------------------------------------------------ */

#define CHUNK 64 /* packets that the pool grows by */

struct sw_pool {
    sw_slot *free;
    size_t stride; /* of slots: sw_slot, phv, buffer */
    size_t buf;    /* where the buffer starts in a slot */
    char *chunk[SW_POOL_MAX / CHUNK];
    uint32_t n_chunks;
    uint32_t used; /* slots of the last chunk; a slot's memory is not touched before */
};

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

static int pool_init(sw_dev *d)
{
    struct sw_pool *pool = d->pool = calloc(1, sizeof *pool);
    if (!pool)
        return SW_ENOMEM;
    pool->buf = round_up(sizeof(sw_slot) + d->prog->phv_size, 64);
    pool->stride = round_up(pool->buf + SW_HEADROOM + SW_PACKET_MAX, 64) | 64; /* odd lines: slots spread in caches */
    pool->used = CHUNK;
    return SW_OK;
}

static void pool_free(sw_dev *d)
{
    for (uint32_t i = 0; d->pool && i < d->pool->n_chunks; i++) {
        ASAN_UNPOISON_MEMORY_REGION(d->pool->chunk[i], CHUNK * d->pool->stride);
        free(d->pool->chunk[i]);
    }
    free(d->pool);
}

static sw_slot *slot_new(sw_dev *d)
{
    struct sw_pool *pool = d->pool;
    if (pool->used == CHUNK) {
        if (pool->n_chunks == SW_POOL_MAX / CHUNK)
            return NULL;
        char *chunk = aligned_alloc(64, CHUNK * pool->stride);
        if (!chunk)
            return NULL;
        ASAN_POISON_MEMORY_REGION(chunk, CHUNK * pool->stride);
        pool->chunk[pool->n_chunks++] = chunk;
        pool->used = 0;
    }
    sw_slot *slot = (sw_slot *)(pool->chunk[pool->n_chunks - 1] + pool->used++ * pool->stride);
    ASAN_UNPOISON_MEMORY_REGION(slot, offsetof(sw_slot, pkt));
    slot->timer.pos = 0;
    return slot;
}

sw_pkt *sw_pkt_alloc(sw_dev *d)
{
    sw_slot *slot = d->pool->free;
    if (slot)
        d->pool->free = slot->next_free;
    else if (!(slot = slot_new(d))) {
        d->stats.no_buffer++;
        return NULL;
    }
    ASAN_UNPOISON_MEMORY_REGION(slot, sizeof *slot + d->prog->phv_size);
    uint8_t *buf = (uint8_t *)slot + d->pool->buf;
    ASAN_UNPOISON_MEMORY_REGION(buf, SW_HEADROOM + SW_PACKET_MAX);
    slot->pkt = (sw_pkt){.dev = d, .phv = slot + 1, .buf = buf, .off = SW_HEADROOM, .truncate = UINT32_MAX};
    return &slot->pkt;
}

void sw_pkt_free(sw_pkt *pkt)
{
    struct sw_pool *pool = pkt->dev->pool;
    sw_slot *slot = sw_slot_of(pkt);
    slot->next_free = pool->free;
    pool->free = slot;
    ASAN_POISON_MEMORY_REGION(pkt, pool->stride - offsetof(sw_slot, pkt));
}

void sw_pkt_end(sw_pkt *pkt, const char *why)
{
    (void)why; /* without traces */
    SW_T(pkt, "{\"step\":\"drop\",\"why\":\"%s\"}", why);
    sw_pkt_free(pkt);
}

void sw_pkt_drop(sw_pkt *pkt, const char *why)
{
    pkt->dev->stats.dropped++;
    sw_pkt_end(pkt, why);
}

sw_pkt *sw_pkt_copy(sw_pkt *pkt, bool phv)
{
    sw_pkt *copy = sw_pkt_alloc(pkt->dev);
    if (!copy)
        return NULL;
    uint8_t *buf = copy->buf;
    void *fields = copy->phv;
    *copy = *pkt;
    copy->next = NULL;
    copy->buf = buf;
    copy->phv = fields;
    uint32_t start = pkt->off < SW_HEADROOM ? pkt->off : SW_HEADROOM; /* with what has been parsed */
    memcpy(buf + start, pkt->buf + start, pkt->off + pkt->len - start);
    if (phv)
        memcpy(fields, pkt->phv, pkt->dev->prog->phv_size);
    return copy;
}

sw_pkt *sw_pkt_from(sw_dev *d, uint32_t port, const uint8_t *data, uint32_t len)
{
    sw_pkt *pkt = sw_pkt_alloc(d);
    if (!pkt)
        return NULL;
    pkt->in_port = port;
    pkt->len = pkt->packet_length = pkt->ingress_length = len;
    memcpy(pkt->buf + SW_HEADROOM, data, len);
    return pkt;
}

/* ---- the device --------------------------------------------------------------------------------------- */

static bool is_valid(const sw_config *cfg)
{
    return cfg->priorities >= 1 && cfg->priorities <= SW_MAX_PRIORITIES && cfg->tick_ns &&
           (cfg->cpu_port < SW_MAX_PORTS || cfg->cpu_port == SW_NO_PORT);
}

sw_dev *sw_create(const sw_config *cfg)
{
    if (sw_the_program.abi != SW_ABI || !is_valid(cfg))
        return NULL;
    sw_dev *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->prog = &sw_the_program;
    d->cfg = *cfg;
    sw_seed(d->rng, cfg->seed);
    pthread_mutex_init(&d->lock, NULL);
    if (pool_init(d) || sw_tm_init(d) || sw_ports_init(d) || sw_events_init(d) || sw_digests_init(d) ||
        sw_state_init(d) || sw_repl_init(d) || sw_tables_init(d)) {
        sw_destroy(d);
        return NULL;
    }
    return d;
}

void sw_destroy(sw_dev *d)
{
    if (d->cfg.realtime)
        sw_stop(d);
    sw_tables_free(d);
    sw_repl_free(d);
    sw_state_free(d);
    sw_digests_free(d);
    sw_events_free(d);
    sw_ports_free(d);
    sw_tm_free(d);
    pool_free(d);
    free(d->trace);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

void sw_stats_get(sw_dev *d, sw_stats *stats)
{
    sw_lock(d);
    *stats = d->stats;
    sw_unlock(d);
}

uint64_t sw_now(sw_dev *d)
{
    if (d->cfg.realtime)
        return sw_net_clock(d);
    sw_lock(d);
    uint64_t now = d->now;
    sw_unlock(d);
    return now;
}

/* ---- virtual time ------------------------------------------------------------------------------------- */

int sw_inject(sw_dev *d, uint32_t port, const uint8_t *data, uint32_t len, uint64_t now)
{
    if (d->cfg.realtime || port >= SW_MAX_PORTS || len > SW_PACKET_MAX)
        return SW_EINVAL;
    int err = SW_OK;
    sw_lock(d);
    if (now < d->now || now > SW_TIME_MAX) {
        err = SW_EINVAL;
    } else if (!d->ports->port[port].info.exists) {
        err = SW_ENOENT;
    } else {
        sw_tm_run(d, now);
        sw_tm_receive(d, port, data, len);
        sw_tm_run(d, now);
    }
    sw_unlock(d);
    return err;
}

int sw_advance(sw_dev *d, uint64_t now)
{
    if (d->cfg.realtime)
        return SW_EINVAL;
    sw_lock(d);
    int err = now < d->now || now > SW_TIME_MAX ? SW_EINVAL : SW_OK;
    if (!err)
        sw_tm_run(d, now);
    sw_unlock(d);
    return err;
}

int sw_packet_out(sw_dev *d, uint32_t port, const uint8_t *data, uint32_t len)
{
    if (port >= SW_MAX_PORTS || len > SW_PACKET_MAX)
        return SW_EINVAL;
    int err = SW_OK;
    sw_lock_now(d);
    if (d->ports->port[port].info.exists) {
        sw_tm_receive(d, port, data, len);
        sw_tm_run(d, d->now);
        sw_wires_flush(d);
    } else {
        err = SW_ENOENT;
    }
    sw_unlock_wake(d);
    return err;
}

/* ---- bench -------------------------------------------------------------------------------------------- */

static uint64_t processor_ns(void) /* of this thread: others may want the core, too */
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * SW_SECOND + (uint64_t)t.tv_nsec;
}

uint64_t sw_bench(sw_dev *d, uint32_t port, const uint8_t *const *data, const uint32_t *len, uint32_t n, uint64_t rounds)
{
    if (port >= SW_MAX_PORTS || !n)
        return 0;
    sw_lock(d);
    d->ports->bench = true;
    uint64_t start = processor_ns();
    for (uint32_t i = 0; rounds; rounds--) {
        sw_tm_receive(d, port, data[i], len[i]);
        sw_tm_settle(d);
        i = i + 1 == n ? 0 : i + 1;
    }
    uint64_t taken = processor_ns() - start;
    d->ports->bench = false;
    sw_unlock(d);
    return taken;
}
