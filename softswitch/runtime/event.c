/* event.c - events to the control plane: a ring of records for each type, read in the order of arrival.
 *
 * A type that floods fills its own ring only. The rings have a mutex of their own, so that a reader never holds
 * packets up; it is taken after the device lock. Rings are allocated with their first event.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "device.h"

enum { TYPES = SW_EV_LOG + 1 };
static const size_t ring_size[TYPES] = {
    [SW_EV_PACKET_IN] = 4 << 20,
    [SW_EV_DIGEST] = 4 << 20,
    [SW_EV_IDLE] = 4 << 20,
    [SW_EV_PORT] = 1 << 16,
    [SW_EV_LOG] = 1 << 20,
};

typedef struct { /* in the ring, followed by its data padded to 8 bytes */
    uint64_t serial;
    sw_event ev;
} record;

typedef struct { /* offsets are multiples of 8; a record does not wrap: the end of the ring is left out instead */
    uint8_t *bytes;
    size_t head, tail; /* next to read, next to write */
    size_t end;        /* where records stop before the ring's end, when tail < head */
    size_t count;
} ring;

struct sw_events {
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    uint64_t serial;
    bool woken;
    ring rings[TYPES];
};

static size_t record_size(uint32_t len) { return sizeof(record) + ((len + 7u) & ~7u); }

/* Room for size bytes at the tail, or NULL. */
static record *ring_room(ring *r, size_t all, size_t size)
{
    if (!r->bytes)
        r->bytes = malloc(all);
    if (!r->bytes)
        return NULL;
    if (!r->count)
        r->head = r->tail = 0; /* stay within few pages */
    if (r->count && r->tail <= r->head) {
        if (r->head - r->tail < size)
            return NULL;
    } else if (all - r->tail < size) {
        if (r->head < size)
            return NULL;
        r->end = r->tail;
        r->tail = 0;
    }
    return (record *)(void *)(r->bytes + r->tail);
}

void sw_event_push(sw_dev *dev, uint32_t type, uint32_t a, uint64_t b, uint32_t count, const void *data, uint32_t len)
{
    struct sw_events *e = dev->events;
    size_t size = record_size(len);
    pthread_mutex_lock(&e->mutex);
    ring *r = e->rings + type;
    record *rec = len <= SW_EVENT_MAX ? ring_room(r, ring_size[type], size) : NULL;
    if (rec) {
        *rec = (record){e->serial++, {type, a, b, dev->now, count, len}};
        if (len)
            memcpy(rec + 1, data, len);
        r->tail += size;
        r->count++;
        pthread_cond_signal(&e->arrived);
    }
    pthread_mutex_unlock(&e->mutex);
    if (!rec)
        dev->stats.event_drops[type]++;
}

/* The ring with the oldest record, or NULL. */
static ring *oldest(struct sw_events *e)
{
    ring *best = NULL;
    uint64_t serial = UINT64_MAX;
    for (int t = 0; t < TYPES; t++) {
        ring *r = e->rings + t;
        if (!r->count)
            continue;
        const record *rec = (const record *)(const void *)(r->bytes + r->head);
        if (rec->serial < serial) {
            serial = rec->serial;
            best = r;
        }
    }
    return best;
}

static int take(ring *r, sw_event *ev, uint8_t *buf, uint32_t cap)
{
    const record *rec = (const record *)(const void *)(r->bytes + r->head);
    *ev = rec->ev;
    bool fits = ev->len <= cap;
    if (fits && ev->len)
        memcpy(buf, rec + 1, ev->len);
    r->head += record_size(ev->len);
    r->count--;
    if (r->count && r->tail < r->head && r->head == r->end)
        r->head = 0;
    return fits ? 1 : SW_EINVAL;
}

static struct timespec deadline_in(int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

int sw_event_next(sw_dev *dev, sw_event *ev, uint8_t *buf, uint32_t cap, int timeout_ms)
{
    struct sw_events *e = dev->events;
    struct timespec deadline = deadline_in(timeout_ms);
    pthread_mutex_lock(&e->mutex);
    ring *r;
    int waited = timeout_ms > 0 ? 0 : ETIMEDOUT;
    while (!(r = oldest(e)) && !e->woken && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&e->arrived, &e->mutex, &deadline);
    int result = r ? take(r, ev, buf, cap) : 0;
    if (!r)
        e->woken = false;
    pthread_mutex_unlock(&e->mutex);
    return result;
}

/* A wake that finds nobody waiting serves the next one who would wait. */
void sw_event_wake(sw_dev *dev)
{
    pthread_mutex_lock(&dev->events->mutex);
    dev->events->woken = true;
    pthread_cond_signal(&dev->events->arrived);
    pthread_mutex_unlock(&dev->events->mutex);
}

int sw_events_init(sw_dev *dev)
{
    struct sw_events *e = dev->events = calloc(1, sizeof *e);
    if (!e)
        return SW_ENOMEM;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&e->arrived, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&e->mutex, NULL);
    return SW_OK;
}

void sw_events_free(sw_dev *dev)
{
    struct sw_events *e = dev->events;
    if (!e)
        return;
    for (int t = 0; t < TYPES; t++)
        free(e->rings[t].bytes);
    pthread_cond_destroy(&e->arrived);
    pthread_mutex_destroy(&e->mutex);
    free(e);
    dev->events = NULL;
}
