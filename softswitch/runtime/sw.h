/* sw.h - the types and calls that the generated program, the runtime's modules and Python share.
 *
 * One device (sw_dev) runs one program (sw_program, made by softswitch/codegen from BMv2 JSON).
 * Every call below that takes a sw_dev is safe from any thread: it takes the device lock, except the ones
 * marked [packet], which run on the packet path with the lock already held.
 * Times are nanoseconds on the device's clock. Byte strings are big-endian. Calls that can fail return
 * 0 (or a count) or a negative SW_E* code and leave the device as it was.
 */
#ifndef SW_H
#define SW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SW_ABI 1

enum {
    SW_OK = 0,
    SW_ENOENT = -1,   /* no such object */
    SW_EEXIST = -2,   /* already there */
    SW_EFULL = -3,    /* table, profile, pool or port list is full */
    SW_EINVAL = -4,   /* argument out of range */
    SW_EBUSY = -5,    /* in use (a member of a group, a group of an entry) */
    SW_ENOMEM = -6,
    SW_EIO = -7,      /* the operating system refused; errno tells */
};

#define SW_MAX_PORTS 512       /* port numbers are 0..511, as v1model's PortId_t */
#define SW_MAX_PRIORITIES 8    /* egress queues of one port */
#define SW_NO_PORT 0xffffffffu
#define SW_TIME_MAX (1ull << 62) /* ns: the clock's end, after 146 years; a sum of two times cannot overflow */

typedef unsigned __int128 u128;
typedef __int128 i128;

typedef struct sw_dev sw_dev;
typedef struct sw_pkt sw_pkt;
typedef struct sw_entry sw_entry;

/* ---- what the generated program says of itself ------------------------------------------------------- */

typedef enum { SW_EXACT, SW_LPM, SW_TERNARY, SW_RANGE } sw_match;
typedef enum { SW_SIMPLE, SW_INDIRECT, SW_SELECTOR } sw_impl;

typedef struct { /* one field of a table key; fields lie in the key byte-padded, right-aligned, in JSON order */
    const char *name;
    uint32_t width;  /* bits */
    uint32_t offset; /* bytes from the start of the key */
    uint32_t nbytes; /* (width + 7) / 8 */
    sw_match match;
} sw_key_field;

typedef struct { /* one action parameter: from the big-endian argument string into the args struct */
    const char *name;
    uint32_t width;  /* bits */
    uint32_t offset; /* in the args struct */
    uint32_t size;   /* there: 1, 2, 4, 8 or 16 (native integers), or a multiple of 8 (little-endian limbs) */
} sw_param;

typedef struct {
    const char *name;
    uint32_t n_params;
    const sw_param *params;
    uint32_t args_size; /* of the args struct */
} sw_action_desc;

typedef struct {
    const char *name;
    sw_match match; /* of the table as a whole: SW_EXACT, SW_LPM, SW_TERNARY, SW_RANGE */
    sw_impl impl;
    int profile;    /* index, or -1 */
    uint32_t max_size;
    uint32_t n_fields;
    const sw_key_field *fields;
    uint32_t key_bytes;  /* sum of nbytes */
    uint32_t key_stride; /* key_bytes rounded up to 8: how long a key buffer is; the rest is zero */
    bool with_counters, with_ageing;
    int direct_meter;      /* index into meters, or -1 */
    int default_action;    /* index into actions, or -1 for none */
    const uint8_t *default_args; /* big-endian, as sw_table_set_default takes it */
} sw_table_desc;

typedef struct {
    const char *name;
    uint32_t max_size;
    bool selector;
    uint64_t (*hash)(sw_pkt *); /* of the selector's input fields, with its algorithm; NULL without selector */
} sw_profile_desc;

typedef struct { const char *name; uint32_t size; bool is_direct; } sw_counter_desc;
typedef struct { const char *name; uint32_t size; bool is_direct; bool bytes; uint32_t rates; } sw_meter_desc;
typedef struct { const char *name; uint32_t size; uint32_t width; } sw_register_desc;
typedef struct { const char *name; uint32_t id; uint32_t nbytes; } sw_digest_desc;      /* id: as in the JSON */
typedef struct { const char *name; uint32_t width; } sw_value_set_desc;

typedef struct {
    uint32_t abi;
    const char *name;
    uint32_t phv_size;
    uint32_t n_tables, n_actions, n_profiles, n_counters, n_meters, n_registers, n_digests, n_value_sets;
    const sw_table_desc *tables;
    const sw_action_desc *actions;
    const sw_profile_desc *profiles;
    const sw_counter_desc *counters;
    const sw_meter_desc *meters;
    const sw_register_desc *registers;
    const sw_digest_desc *digests;
    const sw_value_set_desc *value_sets;
    void (*receive)(sw_pkt *); /* a new packet: clears the PHV and sets ingress_port, packet_length, timestamp */
    void (*ingress)(sw_pkt *); /* parser, ingress, then what simple_switch does at its end; consumes the packet */
    void (*egress)(sw_pkt *);  /* after dequeue: egress, deparser, transmit/recirculate; consumes the packet */
} sw_program;

extern const sw_program sw_the_program; /* every generated program defines it */

/* ---- packets ----------------------------------------------------------------------------------------- */

#define SW_HEADROOM 512
#define SW_PACKET_MAX 10240 /* longest packet taken in, bytes */

struct sw_pkt {
    sw_pkt *next; /* in a queue or the free list */
    sw_dev *dev;
    void *phv; /* the generated program's phv_t; 16-byte aligned */
    uint8_t *buf; /* SW_HEADROOM + SW_PACKET_MAX bytes */
    uint32_t off; /* first byte that is not parsed (after the deparser: first byte of the packet) */
    uint32_t len; /* bytes from there */
    uint32_t in_port;
    uint32_t egress_port;
    uint32_t packet_length;  /* BMv2's packet register 0 */
    uint32_t ingress_length; /* as received; counters and meters count this */
    uint32_t truncate;       /* longest length to send, or UINT32_MAX */
    uint32_t parser_error;
    uint32_t hops;           /* resubmits, recirculations and clones so far */
    uint16_t clone_session;  /* 0x8000 | session, or 0 */
    uint16_t clone_fields;
    uint16_t digest;         /* learn list id, or 0 */
    uint16_t resubmit;       /* field list id, or 0 */
    uint16_t recirculate;    /* field list id, or 0 */
    bool exited;
    bool checksum_error;
    uint8_t priority;
    uint64_t enqueued_ns;
};

sw_pkt *sw_pkt_alloc(sw_dev *);             /* [packet] NULL when the pool's limit is reached (counted) */
sw_pkt *sw_pkt_copy(sw_pkt *, bool phv);    /* [packet] bytes and fields, and the PHV if asked */
void sw_pkt_free(sw_pkt *);                 /* [packet] */
void sw_pkt_drop(sw_pkt *, const char *why);/* [packet] frees and counts; why is for traces */

/* ---- tables (table.c) -------------------------------------------------------------------------------- */

#define SW_NO_HANDLE 0 /* handles start at 1 and are not reused */

typedef struct { /* a meter's state: RFC 2698, colours by bytes or packets as the descriptor says */
    bool configured;
    double cir, pir;   /* per second, bytes or packets */
    double cburst, pburst;
    double ctokens, ptokens;
    uint64_t last_ns;
} sw_meter;

struct sw_entry {
    uint64_t handle;
    uint64_t idle_timeout_ns;
    uint64_t target; /* indirect tables: member or group handle */
    bool target_is_group;
    int32_t priority;
    uint32_t table;
    sw_meter meter;  /* direct meter */
    _Alignas(64) uint64_t packets; /* direct counter. What every packet needs shares a cache line: */
    uint64_t bytes;
    uint64_t last_hit_ns;
    uint32_t action;      /* index; for indirect tables the action of the chosen member, see sw_hit */
    bool idle_notified;
    _Alignas(16) uint8_t args[]; /* the action's args struct */
};

typedef struct { /* what a table decided about one packet */
    sw_entry *entry;  /* NULL on a miss */
    uint32_t action;  /* index into actions, SW_NO_ACTION or SW_DROP_ACTION */
    const void *args; /* the action's args struct */
} sw_hit;
#define SW_NO_ACTION 0xffffffffu
#define SW_DROP_ACTION 0xfffffffeu /* a group without a live member: drop the packet (already counted) */

/* [packet] Look the key up; counts, ages; picks the selector's member. key: key_stride bytes. */
sw_hit sw_table_apply(sw_pkt *, uint32_t table, const uint64_t *key);

typedef struct { /* one entry as the control plane says it */
    const uint8_t *key;  /* key_bytes; for a range field the low end */
    const uint8_t *mask; /* key_bytes: mask of ternary and lpm fields, high end of range fields, all ones of exact
                            ones; may be NULL in tables that are wholly exact */
    int32_t priority;    /* larger wins (P4Runtime); ignored in exact and lpm tables */
    uint32_t action;     /* simple tables */
    const uint8_t *args; /* big-endian, every parameter byte-padded, in order */
    uint32_t args_len;
    uint64_t target;     /* indirect tables: a member's or group's handle */
    bool target_is_group;
    uint64_t idle_timeout_ns; /* 0 none */
} sw_entry_spec;

int sw_table_add(sw_dev *, uint32_t table, const sw_entry_spec *, uint64_t *handle);
int sw_table_modify(sw_dev *, uint32_t table, uint64_t handle, const sw_entry_spec *); /* action, target, timeout */
int sw_table_delete(sw_dev *, uint32_t table, uint64_t handle);
int sw_table_find(sw_dev *, uint32_t table, const sw_entry_spec *, uint64_t *handle); /* same key, mask, priority */
int sw_table_set_default(sw_dev *, uint32_t table, uint32_t action, const uint8_t *args, uint32_t args_len);
int sw_table_set_default_target(sw_dev *, uint32_t table, uint64_t target, bool is_group);
int sw_table_reset_default(sw_dev *, uint32_t table);
int64_t sw_table_count(sw_dev *, uint32_t table);
typedef struct { uint64_t packets, bytes, idle_ns; } sw_entry_stats;
int sw_entry_stats_get(sw_dev *, uint32_t table, uint64_t handle, sw_entry_stats *); /* handle 0: default entry */
int sw_entry_counter_set(sw_dev *, uint32_t table, uint64_t handle, uint64_t packets, uint64_t bytes);
void sw_table_sweep(sw_dev *, uint64_t now); /* [packet] idle timeouts: emits SW_EV_IDLE events */

int sw_member_add(sw_dev *, uint32_t profile, uint32_t action, const uint8_t *args, uint32_t args_len, uint64_t *handle);
int sw_member_modify(sw_dev *, uint32_t profile, uint64_t handle, uint32_t action, const uint8_t *args, uint32_t args_len);
int sw_member_delete(sw_dev *, uint32_t profile, uint64_t handle); /* SW_EBUSY while a group or entry uses it */
typedef struct { uint64_t member; uint32_t weight; uint32_t watch_port; /* SW_NO_PORT: none */ } sw_group_member;
int sw_group_add(sw_dev *, uint32_t profile, const sw_group_member *, uint32_t n, uint32_t max_size, uint64_t *handle);
int sw_group_modify(sw_dev *, uint32_t profile, uint64_t handle, const sw_group_member *, uint32_t n);
int sw_group_delete(sw_dev *, uint32_t profile, uint64_t handle);  /* SW_EBUSY while an entry uses it */

int sw_value_set_add(sw_dev *, uint32_t vs, const uint8_t *value, const uint8_t *mask);
int sw_value_set_delete(sw_dev *, uint32_t vs, const uint8_t *value, const uint8_t *mask);
int sw_value_set_clear(sw_dev *, uint32_t vs);
bool sw_value_set_has(sw_dev *, uint32_t vs, const uint8_t *value); /* [packet] value: (width+7)/8 bytes */

/* ---- counters, meters, registers (stateful.c) -------------------------------------------------------- */

void sw_count(sw_pkt *, uint32_t counter, uint64_t index);               /* [packet] out of range: ignored, counted */
uint32_t sw_meter_run(sw_pkt *, uint32_t meter, uint64_t index);         /* [packet] 0 green, 1 yellow, 2 red */
uint32_t sw_meter_run_direct(sw_pkt *, uint32_t meter, sw_entry *);      /* [packet] */
typedef struct { void *cells; uint32_t size, width, stride; } sw_register; /* stride: 8, 16 or 8 * limbs bytes */
/* [packet] cell address or NULL when out of range (counted) */
void *sw_register_cell(sw_pkt *, uint32_t reg, uint64_t index);

int sw_counter_get(sw_dev *, uint32_t counter, uint64_t index, uint64_t *packets, uint64_t *bytes);
int sw_counter_set(sw_dev *, uint32_t counter, uint64_t index, uint64_t packets, uint64_t bytes);
typedef struct { double cir, cburst, pir, pburst; bool configured; } sw_meter_config; /* per second; burst in units */
int sw_meter_get(sw_dev *, uint32_t meter, uint64_t index, sw_meter_config *);
int sw_meter_set(sw_dev *, uint32_t meter, uint64_t index, const sw_meter_config *); /* not configured: always green */
int sw_entry_meter_get(sw_dev *, uint32_t table, uint64_t handle, sw_meter_config *);
int sw_entry_meter_set(sw_dev *, uint32_t table, uint64_t handle, const sw_meter_config *);
int sw_register_get(sw_dev *, uint32_t reg, uint64_t index, uint8_t *value /* (width+7)/8, big-endian */);
int sw_register_set(sw_dev *, uint32_t reg, uint64_t index, const uint8_t *value);

/* ---- hashes (hash.c) --------------------------------------------------------------------------------- */

uint64_t sw_crc16(const uint8_t *, size_t);
uint64_t sw_crc32(const uint8_t *, size_t);
uint64_t sw_crcCCITT(const uint8_t *, size_t);
uint64_t sw_csum16(const uint8_t *, size_t);
uint64_t sw_xor16(const uint8_t *, size_t);
uint64_t sw_cksum16(const uint8_t *, size_t); /* BMv2's "cksum16"; equals csum16 */
uint64_t sw_identity(const uint8_t *, size_t);
uint64_t sw_xxh64(const uint8_t *, size_t);   /* BMv2's "bmv2_hash" */
uint64_t sw_hash_ex(const uint8_t *, size_t); /* BMv2's "hash_ex" */
/* custom CRCs, configurable while running (BMv2's crc16_custom, crc32_custom) are per calculation: */
typedef struct { uint32_t width; uint64_t poly, init, xor_out; bool reflect_in, reflect_out; } sw_crc_params;
uint64_t sw_crc_custom(const sw_crc_params *, const uint8_t *, size_t);
uint64_t sw_random(sw_dev *); /* [packet] 64 uniform bits from the device's seed */

/* ---- traffic manager (tm.c, timer.c), faults (fault.c), packet generator (pktgen.c) ------------------ */

/* [packet] Hand a packet to egress queue (port, pkt->priority); drops by depth; consumes it. */
void sw_tm_enqueue(sw_pkt *, uint32_t port);
uint32_t sw_tm_depth(sw_dev *, uint32_t port, uint32_t priority);  /* [packet] packets waiting */
void sw_tm_transmit(sw_pkt *, uint32_t port);  /* [packet] off egress: to the wire, through the port's faults */
void sw_tm_again(sw_pkt *);                    /* [packet] resubmit/recirculate: before any new packet */
void sw_tm_receive(sw_dev *, uint32_t port, const uint8_t *data, uint32_t len); /* [packet] from the wire, through faults */
void sw_tm_run(sw_dev *, uint64_t now);        /* [packet] do everything that is due until now */
uint64_t sw_tm_next(sw_dev *);                 /* [packet] when the next thing is due, UINT64_MAX: never */

typedef struct { uint64_t rate_pps, rate_bps; /* 0: no limit */ uint32_t depth_packets; uint64_t depth_bytes; /* 0: no limit */ } sw_queue_config;
int sw_queue_set(sw_dev *, uint32_t port, uint32_t priority, const sw_queue_config *);
int sw_queue_get(sw_dev *, uint32_t port, uint32_t priority, sw_queue_config *);
int sw_port_rate_set(sw_dev *, uint32_t port, uint64_t rate_bps); /* all queues of the port together; 0: no limit */
typedef struct { uint64_t packets, bytes, drops, drop_bytes; uint32_t depth, depth_max; uint64_t depth_bytes; } sw_queue_stats;
int sw_queue_stats_get(sw_dev *, uint32_t port, uint32_t priority, sw_queue_stats *, bool clear_max);

typedef enum { SW_RX, SW_TX } sw_dir;
typedef struct {
    double loss;                   /* probability of a drop */
    double burst_enter, burst_exit;/* Gilbert: chance per packet to enter and leave a state where all is lost */
    double corrupt;                /* probability that one bit is flipped */
    double duplicate;
    uint64_t delay_ns, jitter_ns;  /* extra delay, plus uniform 0..jitter (reorders) */
    uint64_t rate_bps;             /* cap, 0 none */
    bool down;                     /* nothing passes this way, silently */
} sw_fault;
int sw_fault_set(sw_dev *, uint32_t port, sw_dir, const sw_fault *); /* all zero: none */
int sw_fault_get(sw_dev *, uint32_t port, sw_dir, sw_fault *);
int sw_faults_clear(sw_dev *);

typedef struct {
    uint32_t port;
    uint64_t interval_ns;
    uint64_t count; /* 0: for ever */
    const uint8_t *data;
    uint32_t len;
    bool watches;  /* byte watched_at of each packet is 1 while watched_port is down, and 0 while it is up */
    uint32_t watched_port, watched_at;
} sw_pktgen;
int sw_pktgen_set(sw_dev *, uint32_t id, const sw_pktgen *); /* id 0..63; first packet one interval from now */
int sw_pktgen_clear(sw_dev *, uint32_t id);

/* ---- multicast, clones (replicate.c) ------------------------------------------------------------------ */

typedef struct { uint32_t port; uint32_t rid; } sw_replica;
int sw_mcast_set(sw_dev *, uint32_t group, const sw_replica *, uint32_t n); /* creates or replaces; 1..65535 */
int sw_mcast_delete(sw_dev *, uint32_t group);
int sw_clone_set(sw_dev *, uint32_t session, const sw_replica *, uint32_t n, uint32_t truncate_bytes); /* 0: whole */
int sw_clone_delete(sw_dev *, uint32_t session);
typedef struct { uint32_t n; uint32_t truncate; const sw_replica *replicas; } sw_replicas;
const sw_replicas *sw_mcast_get(sw_dev *, uint32_t group);    /* [packet] NULL: no such group */
const sw_replicas *sw_clone_get(sw_dev *, uint32_t session);  /* [packet] NULL: no such session */

/* ---- events to the control plane (event.c) ------------------------------------------------------------ */

typedef enum { SW_EV_NONE, SW_EV_PACKET_IN, SW_EV_DIGEST, SW_EV_IDLE, SW_EV_PORT, SW_EV_LOG, SW_EV_OUTPUT } sw_event_type;
typedef struct {
    uint32_t type;
    uint32_t a;      /* PACKET_IN: 0; DIGEST: digest index; IDLE: table index; PORT: port; LOG: level; OUTPUT: port */
    uint64_t b;      /* DIGEST: list id; IDLE: entry handle; PORT: 1 up, 0 down; else 0 */
    uint64_t time;   /* ns */
    uint32_t count;  /* DIGEST: samples, each descriptor.nbytes long, in data */
    uint32_t len;    /* bytes of data */
} sw_event;
#define SW_EVENT_MAX 65536 /* longest data of an event, bytes */
/* Wait up to timeout_ms for an event (0: no wait). data is copied to buf; an event longer than cap is dropped and
 * SW_EINVAL returned with ev->len set. Returns 1 with an event, 0 without. One reader at a time. */
int sw_event_next(sw_dev *, sw_event *ev, uint8_t *buf, uint32_t cap, int timeout_ms);
void sw_event_wake(sw_dev *); /* makes a waiting sw_event_next return 0 at once */
void sw_event_push(sw_dev *, uint32_t type, uint32_t a, uint64_t b, uint32_t count, const void *data, uint32_t len); /* [packet] bounded; drops are counted per type */

void sw_digest(sw_pkt *, uint32_t digest, const uint8_t *sample); /* [packet] descriptor.nbytes long */
typedef struct { bool enabled; uint32_t max_list_size; uint64_t max_timeout_ns, ack_timeout_ns; } sw_digest_config;
int sw_digest_set(sw_dev *, uint32_t digest, const sw_digest_config *);
int sw_digest_ack(sw_dev *, uint32_t digest, uint64_t list_id);
void sw_digest_sweep(sw_dev *, uint64_t now); /* [packet] flushes lists whose timeout passed */
uint64_t sw_digest_next(sw_dev *);            /* [packet] when the next sweep has something to do; UINT64_MAX: never */

/* ---- ports (port.c) ------------------------------------------------------------------------------------ */

typedef struct { bool exists, up; char ifname[32]; uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes, rx_drops, tx_drops, fault_drops, fault_corrupt, fault_duplicates; } sw_port_info;
int sw_port_add(sw_dev *, uint32_t port, const char *ifname); /* ifname "": in memory (virtual time) */
int sw_port_remove(sw_dev *, uint32_t port);
int sw_port_set_up(sw_dev *, uint32_t port, bool up);         /* administratively; emits SW_EV_PORT on a change */
int sw_port_get(sw_dev *, uint32_t port, sw_port_info *);
bool sw_port_is_up(sw_dev *, uint32_t port);                  /* [packet] */
int sw_port_pcap(sw_dev *, uint32_t port, const char *path);  /* tap: both directions into a pcap file; NULL: stop */
/* The wire: the traffic manager gives a frame to the port. In virtual time it becomes an output. */
void sw_port_send(sw_dev *, uint32_t port, const uint8_t *data, uint32_t len); /* [packet] */

/* ---- device (device.c) --------------------------------------------------------------------------------- */

typedef struct {
    uint64_t seed;
    uint32_t cpu_port;   /* SW_NO_PORT: none */
    uint32_t drop_port;  /* 511 */
    uint32_t priorities; /* egress queues per port, 1..SW_MAX_PRIORITIES */
    uint32_t tick_ns;    /* unit of the data plane's timestamps: 1000 as BMv2, 1 in the lab */
    bool realtime;
} sw_config;

typedef struct {
    uint64_t received, transmitted, dropped, no_buffer, loop_drops, parser_errors, queue_drops, unknown_group,
             no_live_member, index_errors, assert_failures, event_drops[8];
} sw_stats;

sw_dev *sw_create(const sw_config *);
void sw_destroy(sw_dev *);
void sw_stats_get(sw_dev *, sw_stats *);
/* Virtual time. Output packets wait as SW_EV_OUTPUT records in a buffer of their own: */
int sw_inject(sw_dev *, uint32_t port, const uint8_t *data, uint32_t len, uint64_t now);
int sw_advance(sw_dev *, uint64_t now);
typedef struct { uint32_t port, len; uint64_t time; } sw_output; /* header; the packet's bytes follow, padded to 8 */
uint32_t sw_outputs_take(sw_dev *, uint8_t *buf, uint32_t cap); /* bytes written; call until 0 */
int sw_packet_out(sw_dev *, uint32_t port, const uint8_t *data, uint32_t len); /* as if received on port (cpu_port), now */
/* Real time: one thread. */
int sw_start(sw_dev *);
int sw_stop(sw_dev *);
uint64_t sw_now(sw_dev *);
/* Bench: receive the n packets round after round for `rounds` packets, count what leaves; returns ns of the
 * thread's processor time. */
uint64_t sw_bench(sw_dev *, uint32_t port, const uint8_t *const *data, const uint32_t *len, uint32_t n, uint64_t rounds);

#ifdef SW_TRACE
void sw_trace(sw_pkt *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define SW_T(...) sw_trace(__VA_ARGS__)
#else
#define SW_T(...) ((void)0)
#endif

#endif
