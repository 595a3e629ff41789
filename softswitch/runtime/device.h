/* device.h - what the runtime's own modules know of a device; the generated program sees sw.h and v1model.h only. */
#ifndef SW_DEVICE_H
#define SW_DEVICE_H

#include <pthread.h>

#include "sw.h"

/* Each module keeps its state behind its own pointer, made by sw_X_init and given back by sw_X_free.
 * init returns SW_OK or SW_ENOMEM; free takes a half-made device (its pointer may be NULL). */
struct sw_dev {
    const sw_program *prog;
    sw_config cfg;
    uint64_t now; /* the device's clock, ns: from outside in virtual time, CLOCK_MONOTONIC since start in real time */
    sw_stats stats;
    uint64_t rng[4];
    struct sw_tables *tables;   /* table.c: tables, profiles, value sets */
    struct sw_state *state;     /* stateful.c */
    struct sw_repl *repl;       /* replicate.c */
    struct sw_events *events;   /* event.c */
    struct sw_digests *digests; /* digest.c */
    struct sw_tm *tm;           /* tm.c, timer.c, fault.c, pktgen.c */
    struct sw_ports *ports;     /* port.c, realtime.c */
    struct sw_pool *pool;       /* device.c */
    char *trace;                /* log.c: lines not yet taken */
    size_t trace_len, trace_cap;
    pthread_mutex_t lock;
    atomic_int waiting; /* control threads that want the lock: the packet thread lets them in between two packets */
};

int sw_tables_init(sw_dev *);
void sw_tables_free(sw_dev *);
int sw_state_init(sw_dev *);
void sw_state_free(sw_dev *);
int sw_repl_init(sw_dev *);
void sw_repl_free(sw_dev *);
int sw_events_init(sw_dev *);
void sw_events_free(sw_dev *);
int sw_digests_init(sw_dev *);
void sw_digests_free(sw_dev *);
int sw_tm_init(sw_dev *);
void sw_tm_free(sw_dev *);
int sw_ports_init(sw_dev *);
void sw_ports_free(sw_dev *);

/* The lock as control calls take it. */
static inline void sw_lock(sw_dev *d)
{
    atomic_fetch_add(&d->waiting, 1);
    pthread_mutex_lock(&d->lock);
    atomic_fetch_sub(&d->waiting, 1);
}
static inline void sw_unlock(sw_dev *d) { pthread_mutex_unlock(&d->lock); }

#endif
