/* tm_int.h - what tm.c, timer.c, fault.c, pktgen.c, port*.c, realtime.c and device.c know of each other.
 * Everything here runs with the device lock held. */
#ifndef SW_TM_INT_H
#define SW_TM_INT_H

#include <stdio.h>

#include "device.h"

#define SW_POOL_MAX 65536 /* packets of one device, in every queue together */
#define SW_PKTGENS 64
#define SW_RATE_MAX 1000000000000000ull /* bits or packets a second; more would overflow the shapers */
#define SW_DELAY_MAX (1ull << 60)       /* ns, for intervals and delays */
#define SW_SECOND 1000000000ull

/* ---- timers (timer.c): one heap per device, ordered by time, then by when they were set --------------- */

#define SW_HEAP_MAX (SW_POOL_MAX + 3 * SW_MAX_PORTS + SW_PKTGENS + 1) /* packets, ports, fault lines, ... */

typedef struct sw_timer {
    void (*fire)(sw_dev *, struct sw_timer *, uint64_t due);
    uint32_t pos; /* in the heap, from 1; 0 when not set */
} sw_timer;

void sw_timer_set(sw_dev *, sw_timer *, uint64_t when); /* sets it, or moves it when it is set */
void sw_timer_cancel(sw_dev *, sw_timer *);

/* ---- shapers (timer.c): space packets (units: 10^9 a packet) or bits (units: 10^9 a bit) exactly ------ */

typedef struct {
    uint64_t rate;                   /* a second; 0: no limit */
    uint64_t free_ns, frac;          /* free again frac/rate ns after free_ns */
    uint64_t charged_ns, charged;    /* the last charge: when, and units; a new rate counts from there */
} sw_shaper;

/* The first whole nanosecond at which something may leave. */
static inline uint64_t sw_shaper_ready(const sw_shaper *s) { return s->free_ns + (s->frac != 0); }
static inline uint64_t sw_bit_units(uint64_t bytes) { return bytes * 8 * SW_SECOND; }
void sw_shaper_charge(sw_shaper *, uint64_t t, uint64_t units); /* something left at t, t >= ready */
void sw_shaper_set(sw_shaper *, uint64_t rate);

/* ---- first in, first out ------------------------------------------------------------------------------ */

typedef struct {
    sw_pkt *head, *tail;
    uint32_t n;
} sw_fifo;

static inline void sw_fifo_put(sw_fifo *f, sw_pkt *p)
{
    p->next = NULL;
    if (f->head)
        f->tail->next = p;
    else
        f->head = p;
    f->tail = p;
    f->n++;
}

static inline sw_pkt *sw_fifo_get(sw_fifo *f)
{
    sw_pkt *p = f->head;
    f->head = p->next;
    f->n--;
    return p;
}

/* ---- the traffic manager ------------------------------------------------------------------------------ */

typedef struct {
    sw_fifo waiting;
    sw_queue_config cfg;
    sw_shaper pps, bps;
    sw_queue_stats stats; /* depth is waiting.n */
} sw_queue;

struct sw_fault_line;

typedef struct { /* made when a port is first used */
    sw_timer timer; /* when the port may send its next packet */
    uint32_t port;
    sw_shaper rate;
    struct sw_fault_line *line[2]; /* by sw_dir; made by the first sw_fault_set */
    sw_queue queue[];              /* cfg.priorities */
} sw_tm_port;

typedef struct {
    uint64_t time, seq;
    sw_timer *timer;
} sw_heap_slot;

typedef struct { /* one periodic packet */
    sw_timer timer;
    sw_pktgen cfg;
    uint64_t sent;
    uint8_t data[]; /* cfg.data is this */
} sw_generator;

struct sw_tm {
    sw_tm_port *port[SW_MAX_PORTS];
    sw_fifo again; /* to ingress: resubmitted and recirculated */
    sw_fifo ready; /* to egress: out of queues without a rate */
    sw_timer sweep;
    sw_generator *generator[SW_PKTGENS];
    uint32_t wire_port;  /* whose packet is in egress now, and the bytes it has put on that port's wire */
    uint64_t wire_bytes;
    uint64_t until;      /* where sw_tm_run is going */
    uint64_t spent;      /* virtual time: work of looping packets within this instant */
    uint64_t seq;
    uint32_t n_heap;
    sw_heap_slot *heap; /* from 1 */
};

sw_tm_port *sw_tm_port_get(sw_dev *, uint32_t port); /* NULL: no memory */
/* A frame that is past the wire: to the program; sw_tm_settle (or sw_tm_run) finishes what it leaves behind. */
void sw_tm_accept(sw_dev *, sw_pkt *);
/* Packets ready for egress go; in virtual time until nothing is left to do at this instant. */
void sw_tm_settle(sw_dev *);

/* fault.c: takes the packet and hands it on (at once, later, twice, never) to sw_tm_accept or to the wire. */
void sw_fault_pass(sw_dev *, struct sw_fault_line *, sw_pkt *);
bool sw_fault_active(const struct sw_fault_line *);
void sw_fault_line_free(struct sw_fault_line *);
void sw_pktgens_free(sw_dev *);

/* ---- packets (device.c) ------------------------------------------------------------------------------- */

typedef struct { /* how a packet lies in the pool: phv and buffer follow */
    sw_timer timer; /* while a fault delays it: */
    union {
        struct sw_fault_line *line;
        void *next_free; /* a slot */
    };
    _Alignas(16) sw_pkt pkt;
} sw_slot;

static inline sw_slot *sw_slot_of(sw_pkt *p) { return (sw_slot *)((char *)p - offsetof(sw_slot, pkt)); }

void sw_pkt_end(sw_pkt *, const char *why); /* frees and traces; the caller has counted */
sw_pkt *sw_pkt_from(sw_dev *, uint32_t port, const uint8_t *data, uint32_t len); /* a frame as received on port */
uint64_t sw_xoshiro(uint64_t rng[4]);
void sw_seed(uint64_t rng[4], uint64_t seed);

/* ---- ports -------------------------------------------------------------------------------------------- */

struct sw_wire; /* an AF_PACKET interface, port_afpacket.c */

typedef struct {
    bool admin, link;
    sw_port_info info; /* up: admin and link */
    FILE *pcap;
    struct sw_wire *wire; /* NULL: in memory, or the interface is away */
} sw_port;

struct sw_ports {
    bool bench;   /* count frames instead of sending them */
    uint8_t *out; /* sw_output records: */
    size_t out_start, out_end, out_cap;
    sw_port port[SW_MAX_PORTS];
    uint16_t wired[SW_MAX_PORTS]; /* ports that have a wire */
    uint32_t n_wired;
    uint32_t n_taps;
    uint64_t wall_ns;   /* real time: the wall clock at the device's 0 */
    struct sw_net *net; /* real time: the thread, and what the system tells of interfaces; realtime.c */
};

void sw_ports_list(sw_dev *);                                        /* makes wired[] anew */
void sw_port_state(sw_dev *, uint32_t port, bool admin, bool link);  /* emits SW_EV_PORT on a change */
void sw_port_tap(sw_dev *, sw_port *, const uint8_t *data, uint32_t len);
void sw_port_sent(sw_dev *, sw_port *, uint32_t len); /* counts */
void sw_port_pcaps_flush(sw_dev *);

/* port_afpacket.c. Open: NULL with errno. */
struct sw_wire *sw_wire_open(const char *ifname);
void sw_wire_close(struct sw_wire *);
int sw_wire_ifindex(const struct sw_wire *);
int sw_wire_fd(const struct sw_wire *); /* to poll for frames */
bool sw_wire_fits(const struct sw_wire *, uint32_t mtu); /* its ring's frames are long enough */
bool sw_wire_link(struct sw_wire *, bool *up);           /* false: the interface is no more */
void sw_wire_clear_error(struct sw_wire *);
/* Hands up to `most` waiting frames to the traffic manager, giving way to control threads in between. */
uint32_t sw_wire_receive(sw_dev *, uint32_t port, uint32_t most);
void sw_wire_send(sw_dev *, uint32_t port, const uint8_t *data, uint32_t len); /* goes with the next flush */
void sw_wires_flush(sw_dev *);
void sw_wire_count_drops(sw_port *); /* adds what the ring has dropped to rx_drops */

/* realtime.c */
int sw_net_init(sw_dev *);
void sw_net_free(sw_dev *);
int sw_net_listen(sw_dev *); /* from now on the thread hears of interfaces; -1 with errno */
void sw_net_wake(sw_dev *); /* the packet thread looks again at what it has to do */
uint64_t sw_net_clock(sw_dev *);
void sw_give_way(sw_dev *);

/* Control calls in real time: the clock as it is now (the packet thread may be asleep). */
static inline void sw_lock_now(sw_dev *d)
{
    sw_lock(d);
    if (d->cfg.realtime)
        d->now = sw_net_clock(d);
}

/* ... and the packet thread learns of the change. */
static inline void sw_unlock_wake(sw_dev *d)
{
    if (d->cfg.realtime)
        sw_net_wake(d);
    sw_unlock(d);
}

#endif
