/* table_int.h - shared by table.c, table_spec.c, ageing.c, slots.c, profile.c, value_set.c and stateful.c. */
#ifndef SW_TABLE_INT_H
#define SW_TABLE_INT_H

#include "match.h"

/* ---- slots: objects by handle. As BMv2 does, a new object takes the lowest free slot; a handle is the slot's
 * number plus one below, how often the slot was used before above, so handles are never reused. */

typedef struct {
    void **obj;
    uint32_t *uses;
    uint64_t *taken; /* a bit a slot */
    uint32_t cap, used, from; /* no free slot below `from` */
} sw_slots;

int sw_slots_take(sw_slots *, void *obj, uint32_t *slot); /* SW_ENOMEM */
void sw_slots_give(sw_slots *, uint32_t slot);
void sw_slots_free(sw_slots *);
uint64_t sw_slots_handle(const sw_slots *, uint32_t slot);
void *sw_slots_get(const sw_slots *, uint64_t handle); /* NULL: no such object */

/* Big-endian arguments: right length, and no value wider than its parameter. */
bool sw_args_ok(const sw_program *, uint32_t action, const uint8_t *args, uint32_t len);
void sw_args_pack(const sw_program *, uint32_t action, const uint8_t *args, uint8_t *to);

/* ---- action profiles ------------------------------------------------------------------------------- */

typedef struct {
    uint64_t handle;
    uint32_t action;
    uint32_t refs;     /* groups and entries */
    uint32_t *slots;   /* the first is the handle's; more as a group gives it more weight */
    uint32_t *users;   /* [w]: how many groups give it weight w, up to n_slots */
    uint32_t n_slots;
    uint8_t *args;
} sw_member;

typedef struct { /* one unit of weight */
    const sw_member *member;
    uint32_t slot; /* BMv2 chooses among live members in this order */
    uint32_t watch_port;
} sw_choice;

typedef struct {
    uint64_t handle;
    uint32_t refs; /* entries */
    uint32_t max_size;
    uint64_t (*hash)(sw_pkt *);
    bool watched; /* a choice has a watch port */
    uint32_t n_choices, n_members;
    sw_choice *choices; /* by slot */
    sw_group_member *members; /* as the control plane said */
} sw_group;

typedef struct {
    const sw_profile_desc *desc;
    sw_slots members, groups;
    uint32_t n_members;
} sw_profile;

typedef struct { /* what an entry of an indirect table points at; both NULL: nothing */
    sw_member *member;
    sw_group *group;
} sw_target;

int sw_target_find(sw_profile *, uint64_t handle, bool is_group, sw_target *); /* SW_ENOENT */
void sw_target_use(sw_target, int more); /* +1 or -1 */
const sw_member *sw_group_choose(sw_pkt *, const sw_group *); /* [packet] NULL: none is live */
void sw_profile_free(sw_profile *);

/* ---- tables ---------------------------------------------------------------------------------------- */

typedef struct sw_node sw_node;
struct sw_node { /* an entry */
    uint64_t *key; /* key_stride bytes each; with mask's bits only */
    uint64_t *mask;
    sw_rule *rule; /* ternary and range tables */
    uint32_t slot;
    sw_node *age_next, **age_link; /* in the wheel of idle timeouts */
    sw_target target;
    sw_entry e;
};

typedef struct {
    const sw_table_desc *desc;
    sw_match match;
    bool indirect;
    uint32_t nwords; /* of a key */
    sw_map index;    /* by key in exact tables; by key, mask, priority in others (there for control only) */
    sw_trie trie;    /* lpm tables without exact fields */
    sw_map tries;    /* lpm tables with exact fields: by key without the lpm field */
    const sw_key_field *lpm;
    uint64_t *exact_mask; /* all but the lpm field; NULL without exact fields */
    sw_rules rules;       /* ternary and range tables */
    sw_slots slots;
    sw_node *miss; /* the default entry */
} sw_table;

typedef struct {
    sw_rules rules;
    sw_map index; /* by value, mask */
    uint64_t serial;
} sw_value_set;

enum { SW_AGE_SHIFT = 24, SW_AGE_BUCKETS = 1024 }; /* 17 ms a bucket */

struct sw_tables {
    pthread_mutex_t writer; /* taken before the device lock; serialises all that changes tables, profiles, value sets */
    sw_table *tables;
    sw_profile *profiles;
    sw_value_set *value_sets;
    size_t args_size;       /* the largest action's, a multiple of 16 */
    sw_node *age[SW_AGE_BUCKETS]; /* entries by when their idle timeout is to be looked at */
    uint64_t age_tick;      /* buckets before are done */
};

/* With the writer mutex held: the entry of the handle, or of 0 the default entry; NULL: there is none. */
sw_entry *sw_table_entry(sw_dev *, uint32_t table, uint64_t handle);

void sw_age_start(sw_dev *, sw_node *, uint64_t timeout, uint64_t now); /* timeout 0: never; device lock held */
void sw_age_stop(sw_node *);                                            /* device lock held */

int sw_value_set_init(sw_value_set *, const sw_value_set_desc *);
void sw_value_set_free(sw_value_set *);

/* ---- matches --------------------------------------------------------------------------------------- */

#define SW_INDEX_WORDS (2 * SW_KEY_WORDS + 1)

typedef struct { /* an entry's match, checked and in words */
    uint64_t key[SW_KEY_WORDS], mask[SW_KEY_WORDS]; /* normalised; a range field's bounds */
    uint64_t index[SW_INDEX_WORDS]; /* key of sw_table.index */
    uint32_t prefix;                /* lpm tables: length, with the zero bits in front */
    int32_t priority;
} sw_match_spec;

int sw_spec_read(const sw_table *, const sw_entry_spec *, sw_match_spec *); /* SW_EINVAL */
/* A rule's mask and value for the node's key and mask. True if the bounds of ranges have to be checked as well. */
bool sw_rule_spec(const sw_table *, const sw_node *, uint64_t *mask, uint64_t *value);

static inline bool sw_uses_rules(const sw_table *t) { return t->match == SW_TERNARY || t->match == SW_RANGE; }

/* Zero bits come before an lpm field in the trie: those that fill its first byte, and these. With them prefixes of 8,
 * 16, 24 and 32 bits end in the middle of a node and need no node of their own. */
enum { SW_LPM_LEAD = 5 };

/* The lpm field of the key as the trie wants it: SW_LPM_WORDS + 2 words. */
static inline void sw_lpm_bits(const sw_table *t, const uint64_t *key, uint64_t *bits)
{
    uint32_t at = t->lpm->offset, last = t->desc->key_stride - 8, n = (t->lpm->nbytes + 7) / 8;
    uint64_t carry = 0;
    for (uint32_t w = 0; w < n; w++, at += 8) {
        uint32_t from = at < last ? at : last; /* no byte beyond the key is read */
        uint64_t v;
        memcpy(&v, (const uint8_t *)key + from, 8);
        v = __builtin_bswap64(v) << 8 * (at - from);
        bits[w] = carry | v >> SW_LPM_LEAD;
        carry = v << (64 - SW_LPM_LEAD);
    }
    bits[n] = carry;
    bits[n + 1] = 0;
}

/* ---- writing --------------------------------------------------------------------------------------- */

static inline void sw_write_begin(sw_dev *dev) { pthread_mutex_lock(&dev->tables->writer); }
static inline int sw_write_end(sw_dev *dev, int result)
{
    pthread_mutex_unlock(&dev->tables->writer);
    return result;
}

/* Bits of the first byte of a value of that width. */
static inline uint8_t sw_top_byte(uint32_t width) { return (uint8_t)(0xff >> (7 & -width)); }

#endif
