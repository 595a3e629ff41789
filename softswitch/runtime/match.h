/* match.h - the search structures behind tables and value sets: a hash map, a prefix trie and a set of ternary rules.
 *
 * One writer at a time (the tables' writer mutex); packets read under the device lock. A writer builds what is big
 * outside the lock and takes the lock only to swap pointers or to change a few words, so that no write holds packets
 * up for long. Where a function takes a sw_dev, NULL means that no packet can see the structure: no lock is taken.
 */
#ifndef SW_MATCH_H
#define SW_MATCH_H

#include "device.h"

#define SW_KEY_WORDS 64 /* longest key, 8-byte words */
#define SW_LPM_WORDS 16 /* longest lpm field, 8-byte words */

/* ---- map: from keys of a fixed number of words to pointers, open addressing with the key in the slot ---- */

typedef struct {
    size_t nwords; /* of a key */
    size_t mask;   /* slots - 1, a power of two less one */
    size_t used;
    uint64_t *slots; /* each: the pointer (0: free), then the key */
} sw_map;

void sw_map_init(sw_map *, size_t nwords);
void sw_map_free(sw_map *);
int sw_map_put(sw_dev *, sw_map *, const uint64_t *key, void *value); /* adds or replaces; SW_ENOMEM */
void sw_map_del(sw_dev *, sw_map *, const uint64_t *key);             /* nothing happens without such a key */

static inline uint64_t sw_fold(uint64_t a, uint64_t b)
{
    u128 p = (u128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static inline uint64_t sw_map_hash(const uint64_t *key, size_t n)
{
    uint64_t h = 0x2d358dccaa6c78a5u;
    for (size_t i = 0; i < n; i++)
        h = sw_fold(h ^ key[i], 0x9e3779b97f4a7c15u);
    return h;
}

/* The slot of the key, or the free one where it would go. */
static inline __attribute__((always_inline)) uint64_t *sw_map_slot(const sw_map *m, const uint64_t *key, size_t n)
{
    for (size_t i = sw_map_hash(key, n);; i++) {
        uint64_t *slot = m->slots + (i & m->mask) * (n + 1);
        uint64_t diff = 0;
        for (size_t w = 0; w < n && slot[0]; w++)
            diff |= slot[1 + w] ^ key[w];
        if (!diff)
            return slot;
    }
}

static inline __attribute__((always_inline)) void *sw_map_get_n(const sw_map *m, const uint64_t *key, size_t n)
{
    return (void *)(uintptr_t)sw_map_slot(m, key, n)[0];
}

/* [packet] The value of the key or NULL. */
static inline void *sw_map_get(const sw_map *m, const uint64_t *key)
{
    switch (m->nwords) { /* the usual lengths, unrolled */
    case 1: return sw_map_get_n(m, key, 1);
    case 2: return sw_map_get_n(m, key, 2);
    case 3: return sw_map_get_n(m, key, 3);
    default: return sw_map_get_n(m, key, m->nwords);
    }
}

/* ---- trie: longest prefix, six bits a level -------------------------------------------------------- */

typedef struct sw_trie sw_trie;
struct sw_trie {    /* a node; all zero: empty */
    uint64_t inner; /* prefixes that end here: bit 2^len - 1 + their last len (0..5) bits */
    uint64_t outer; /* children by their six bits */
    sw_trie *kids;  /* in the order of outer's bits */
    union {
        void *val;   /* of the only bit of inner */
        void **vals; /* in the order of inner's bits, if there are more */
    };
};

/* bits: big-endian words, the first bit of the prefix on top, and one more word after the last. */
void *sw_trie_get(const sw_trie *, const uint64_t *bits); /* [packet] value of the longest prefix, or NULL */
int sw_trie_put(sw_dev *, sw_trie *, const uint64_t *bits, uint32_t len, void *value); /* not there yet; SW_ENOMEM */
void sw_trie_del(sw_dev *, sw_trie *, const uint64_t *bits, uint32_t len);             /* must be there */
void sw_trie_free(sw_trie *);                                                          /* all but the root itself */

/* ---- rules: ternary and range matches by rank ------------------------------------------------------ */

typedef struct sw_rule sw_rule;
typedef struct sw_rule_group sw_rule_group;

struct sw_rule {
    uint64_t rank;                /* the smallest of the matching rules wins */
    const uint64_t *mask, *value; /* a key can match only if key & mask is value */
    const uint64_t *low, *high;   /* bounds of the range fields, or NULL where mask and value say it all */
    sw_rule *same;                /* next rule of equal mask and value, by rank, in a hashed group */
    sw_rule *next, **link;        /* the group's list */
    sw_rule_group *group;
    void *owner; /* whatever the rule is for */
};

typedef struct {
    size_t nwords;
    const sw_key_field *fields; /* which of them are ranges, and where */
    uint32_t n_fields;
    sw_map groups;     /* mask -> sw_rule_group */
    uint64_t *records; /* what packets search, by rank: see rules.c */
    size_t n_records, n_dead;
} sw_rules;

void sw_rules_init(sw_rules *, size_t nwords, const sw_key_field *fields, uint32_t n_fields);
void sw_rules_free(sw_rules *);                           /* the rules themselves are the caller's */
sw_rule *sw_rules_get(const sw_rules *, const uint64_t *key); /* [packet] the best match or NULL */
int sw_rules_add(sw_dev *, sw_rules *, sw_rule *);        /* rank, mask, value, low, high are set; SW_ENOMEM */
void sw_rules_del(sw_dev *, sw_rules *, sw_rule *);

static inline void sw_hold(sw_dev *dev)
{
    if (dev)
        sw_lock(dev);
}
static inline void sw_release(sw_dev *dev)
{
    if (dev)
        sw_unlock(dev);
}

#endif
