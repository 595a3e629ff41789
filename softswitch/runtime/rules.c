/* rules.c - ternary and range rules: tuple space search with a packed list in front.
 *
 * Rules of equal mask form a group. A group of a few rules is searched rule by rule; once it has HASH_FROM, its rules
 * lie in a map by masked value. What packets walk is one array of records sorted by rank, one record for each
 * unhashed rule and one for each hashed group (with a lower bound of its rules' ranks):
 *
 *     bound, pointer (bit 0 set: a group), mask words, value words (unhashed rules)
 *
 * The walk ends where the bound is above the rank of the best match so far. Most hashed groups have nothing for a key:
 * a filter, one bit by the hash of each value, tells that of nearly all of them without a look into the map, and without
 * a branch that the processor cannot predict. A dead record has pointer 0 and matches no key. The array is never changed in place but for dying: a writer makes a new one and swaps it in.
 *
 * A range needs no expansion into prefixes: the group mask is the prefix that low and high have in common, and the
 * bounds are checked afterwards. Ranges of one field that share mask and value all contain the middle of that
 * prefix's block, so they all overlap one another: disjoint ranges never queue up in one chain.
 */
#include <stdlib.h>

#include "match.h"

enum { HASH_FROM = 4, FILTER_LOG = 3 };

struct sw_rule_group {
    uint64_t *filter;    /* of the values in the map, when hashed: at least 16 bits for each */
    uint32_t filter_log; /* of its length in words */
    sw_rule *rules; /* by rank while not hashed */
    size_t count;
    size_t deleted; /* since bound was exact */
    bool hashed;
    uint64_t bound; /* as in the group's record, when hashed */
    sw_map map;     /* masked value -> best rule, when hashed */
    uint64_t first_filter[1 << FILTER_LOG];
    uint64_t mask[];
};

void sw_rules_init(sw_rules *s, size_t nwords, const sw_key_field *fields, uint32_t n_fields)
{
    *s = (sw_rules){.nwords = nwords, .fields = fields, .n_fields = n_fields};
    sw_map_init(&s->groups, nwords);
}

static void group_free(sw_rule_group *g)
{
    sw_map_free(&g->map);
    if (g->filter != g->first_filter)
        free(g->filter);
    free(g);
}

void sw_rules_free(sw_rules *s)
{
    for (size_t i = 0; s->groups.used && i <= s->groups.mask; i++) {
        uint64_t group = s->groups.slots[i * (s->nwords + 1)];
        if (group)
            group_free((sw_rule_group *)(uintptr_t)group);
    }
    sw_map_free(&s->groups);
    free(s->records);
    *s = (sw_rules){0};
}

/* ---- filters ------------------------------------------------------------------------------------------------------- */

static inline size_t filter_bit(uint32_t log, uint64_t hash) { return hash >> (64 - 6 - log); } /* maps use low bits */

static inline bool filter_has(const sw_rule_group *g, uint64_t hash)
{
    size_t bit = filter_bit(g->filter_log, hash);
    return g->filter[bit / 64] >> bit % 64 & 1;
}

static void filter_set(uint64_t *filter, uint32_t log, const sw_rule *r, size_t nwords)
{
    size_t bit = filter_bit(log, sw_map_hash(r->value, nwords));
    filter[bit / 64] |= 1ull << bit % 64;
}

/* A new filter of the group's rules. Without memory for it the old one stays right. */
static void filter_renew(sw_dev *dev, sw_rule_group *g)
{
    uint32_t log = FILTER_LOG;
    while ((size_t)4 << log < g->count)
        log++;
    uint64_t *filter = calloc((size_t)1 << log, sizeof *filter), *old = g->filter;
    if (!filter)
        return;
    for (const sw_rule *r = g->rules; r; r = r->next)
        filter_set(filter, log, r, g->map.nwords);
    sw_hold(dev);
    g->filter = filter;
    g->filter_log = log;
    sw_release(dev);
    if (old != g->first_filter)
        free(old);
}

static void filter_add(sw_dev *dev, sw_rule_group *g, const sw_rule *r)
{
    if ((size_t)4 << g->filter_log < g->count)
        filter_renew(dev, g);
    sw_hold(dev);
    filter_set(g->filter, g->filter_log, r, g->map.nwords);
    sw_release(dev);
}

/* ---- search ---------------------------------------------------------------------------------------- */

static bool in_ranges(const sw_rules *s, const sw_rule *r, const uint64_t *key)
{
    const uint8_t *k = (const uint8_t *)key, *low = (const uint8_t *)r->low, *high = (const uint8_t *)r->high;
    for (uint32_t i = 0; i < s->n_fields; i++) {
        const sw_key_field *f = s->fields + i;
        if (f->match == SW_RANGE && (memcmp(k + f->offset, low + f->offset, f->nbytes) < 0 ||
                                     memcmp(k + f->offset, high + f->offset, f->nbytes) > 0))
            return false;
    }
    return true;
}

/* The best rule of the chain for the masked key, if it beats rank. */
static const sw_rule *chain_best(const sw_rules *s, const sw_rule *r, const uint64_t *key, uint64_t rank)
{
    for (; r && r->rank < rank; r = r->same)
        if (!r->low || in_ranges(s, r, key))
            return r;
    return NULL;
}

static inline __attribute__((always_inline)) const sw_rule *search(const sw_rules *s, const uint64_t *key, size_t n)
{
    const sw_rule *best = NULL;
    uint64_t rank = UINT64_MAX, masked[SW_KEY_WORDS];
    const uint64_t *end = s->records + s->n_records * (2 + 2 * n);
    for (const uint64_t *rec = s->records; rec < end && rec[0] <= rank; rec += 2 + 2 * n) {
        const uint64_t *mask = rec + 2, *value = mask + n;
        if (rec[1] & 1) {
            const sw_rule_group *g = (const sw_rule_group *)(uintptr_t)(rec[1] & ~1ull);
            for (size_t w = 0; w < n; w++)
                masked[w] = key[w] & mask[w];
            if (!filter_has(g, sw_map_hash(masked, n)))
                continue;
            const sw_rule *r = chain_best(s, sw_map_get_n(&g->map, masked, n), key, rank);
            if (r) {
                best = r;
                rank = r->rank;
            }
            continue;
        }
        uint64_t diff = 0;
        for (size_t w = 0; w < n; w++)
            diff |= (key[w] & mask[w]) ^ value[w];
        if (diff)
            continue;
        const sw_rule *r = (const sw_rule *)(uintptr_t)rec[1];
        if (!r->low || in_ranges(s, r, key))
            return r; /* every later record has a larger bound */
    }
    return best;
}

sw_rule *sw_rules_get(const sw_rules *s, const uint64_t *key)
{
    switch (s->nwords) { /* the usual lengths, unrolled */
    case 1: return (sw_rule *)search(s, key, 1);
    case 2: return (sw_rule *)search(s, key, 2);
    case 3: return (sw_rule *)search(s, key, 3);
    default: return (sw_rule *)search(s, key, s->nwords);
    }
}

/* ---- records --------------------------------------------------------------------------------------- */

static size_t record_words(const sw_rules *s) { return 2 + 2 * s->nwords; }

/* Does the record stand for a rule of g, or for g? */
static bool record_is_of(const uint64_t *rec, const sw_rule_group *g)
{
    if (rec[1] & 1)
        return (rec[1] & ~1ull) == (uintptr_t)g;
    return ((const sw_rule *)(uintptr_t)rec[1])->group == g;
}

static void write_record(const sw_rules *s, uint64_t *rec, uint64_t bound, uint64_t pointer, const uint64_t *mask,
                         const uint64_t *value)
{
    size_t size = s->nwords * sizeof(uint64_t);
    rec[0] = bound;
    rec[1] = pointer;
    memcpy(rec + 2, mask, size);
    memcpy(rec + 2 + s->nwords, value, size);
}

/* Swap in an array without dead records and with what stands for g now (NULL: g has not changed). */
static int publish(sw_dev *dev, sw_rules *s, sw_rule_group *g, uint64_t bound)
{
    size_t words = record_words(s), room = s->n_records - s->n_dead + (!g ? 0 : g->hashed ? 1 : g->count), n = 0;
    uint64_t *records = malloc(room * words * sizeof(uint64_t));
    if (!records && room)
        return SW_ENOMEM;
    const uint64_t *old = s->records, *end = old ? old + s->n_records * words : old;
    const sw_rule *rule = g && !g->hashed ? g->rules : NULL;
    bool group = g && g->hashed;
    while (old < end || rule || group) {
        uint64_t next = old < end ? old[0] : UINT64_MAX;
        uint64_t *rec = records + n * words;
        if (old < end && (!old[1] || (g && record_is_of(old, g)))) {
            old += words;
            continue;
        }
        if (group && (old == end || bound <= next)) {
            write_record(s, rec, bound, (uintptr_t)g | 1, g->mask, g->mask);
            group = false;
        } else if (rule && (old == end || rule->rank <= next)) {
            write_record(s, rec, rule->rank, (uintptr_t)rule, rule->mask, rule->value);
            rule = rule->next;
        } else {
            memcpy(rec, old, words * sizeof(uint64_t));
            old += words;
        }
        n++;
    }
    uint64_t *before = s->records;
    sw_hold(dev);
    s->records = records;
    s->n_records = n;
    sw_release(dev);
    free(before);
    s->n_dead = 0;
    if (g)
        g->bound = bound;
    return SW_OK;
}

/* Make the record of that bound and pointer match nothing. */
static void kill_record(sw_dev *dev, sw_rules *s, uint64_t bound, uint64_t pointer)
{
    size_t words = record_words(s), first = 0, n = s->n_records;
    while (n) { /* the first record of that bound */
        size_t half = n / 2;
        if (s->records[(first + half) * words] < bound) {
            first += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    uint64_t *rec = s->records + first * words;
    while (rec[1] != pointer)
        rec += words;
    sw_hold(dev);
    rec[1] = 0;
    memset(rec + 2, 0, s->nwords * sizeof(uint64_t));
    rec[2 + s->nwords] = 1;
    sw_release(dev);
    s->n_dead++;
}

/* ---- groups ---------------------------------------------------------------------------------------- */

static sw_rule_group *group_of(sw_rules *s, const uint64_t *mask)
{
    sw_rule_group *g = sw_map_get(&s->groups, mask);
    if (g)
        return g;
    size_t size = s->nwords * sizeof(uint64_t);
    g = calloc(1, sizeof *g + size);
    if (!g)
        return NULL;
    sw_map_init(&g->map, s->nwords);
    g->filter = g->first_filter;
    g->filter_log = FILTER_LOG;
    memcpy(g->mask, mask, size);
    if (sw_map_put(NULL, &s->groups, mask, g)) {
        free(g);
        return NULL;
    }
    return g;
}

static void group_drop_if_empty(sw_rules *s, sw_rule_group *g)
{
    if (g->count)
        return;
    sw_map_del(NULL, &s->groups, g->mask);
    group_free(g);
}

static void link_rule(sw_rule_group *g, sw_rule *r)
{
    sw_rule **at = &g->rules;
    while (*at && !g->hashed && (*at)->rank < r->rank)
        at = &(*at)->next;
    r->group = g;
    r->link = at;
    r->next = *at;
    if (*at)
        (*at)->link = &r->next;
    *at = r;
    g->count++;
}

static void unlink_rule(sw_rule *r)
{
    *r->link = r->next;
    if (r->next)
        r->next->link = r->link;
    r->group->count--;
}

static int chain_put(sw_dev *dev, sw_rule_group *g, sw_rule *r)
{
    sw_rule *at = sw_map_get(&g->map, r->value);
    filter_add(dev, g, r);
    r->same = at;
    if (!at || r->rank < at->rank)
        return sw_map_put(dev, &g->map, r->value, r);
    while (at->same && at->same->rank < r->rank)
        at = at->same;
    r->same = at->same;
    sw_hold(dev);
    at->same = r;
    sw_release(dev);
    return SW_OK;
}

static void chain_del(sw_dev *dev, sw_rule_group *g, sw_rule *r)
{
    sw_rule *at = sw_map_get(&g->map, r->value);
    if (at == r && !r->same) {
        sw_map_del(dev, &g->map, r->value);
    } else if (at == r) {
        sw_map_put(dev, &g->map, r->value, r->same); /* replaces: needs no memory */
    } else {
        while (at->same != r)
            at = at->same;
        sw_hold(dev);
        at->same = r->same;
        sw_release(dev);
    }
}

static uint64_t lowest_rank(const sw_rule_group *g)
{
    uint64_t rank = UINT64_MAX;
    for (const sw_rule *r = g->rules; r; r = r->next)
        rank = r->rank < rank ? r->rank : rank;
    return rank;
}

/* Turn to hashing; no packet sees the map before publish(). */
static int group_hash(sw_rule_group *g)
{
    for (sw_rule *r = g->rules; r; r = r->next) {
        int err = chain_put(NULL, g, r);
        if (err) {
            sw_map_free(&g->map);
            return err;
        }
    }
    g->hashed = true;
    return SW_OK;
}

int sw_rules_add(sw_dev *dev, sw_rules *s, sw_rule *r)
{
    sw_rule_group *g = group_of(s, r->mask);
    if (!g)
        return SW_ENOMEM;
    bool was_hashed = g->hashed;
    uint64_t bound = g->bound;
    link_rule(g, r);
    int err;
    if (was_hashed) {
        err = chain_put(dev, g, r);
        if (!err && r->rank < bound) {
            err = publish(dev, s, g, r->rank);
            if (err)
                chain_del(dev, g, r);
        }
    } else {
        err = g->count >= HASH_FROM ? group_hash(g) : SW_OK;
        if (!err)
            err = publish(dev, s, g, lowest_rank(g));
        if (err && g->hashed) {
            sw_map_free(&g->map);
            g->hashed = false;
        }
    }
    if (err) {
        unlink_rule(r);
        group_drop_if_empty(s, g);
    }
    return err;
}

void sw_rules_del(sw_dev *dev, sw_rules *s, sw_rule *r)
{
    sw_rule_group *g = r->group;
    if (g->hashed)
        chain_del(dev, g, r);
    else
        kill_record(dev, s, r->rank, (uintptr_t)r);
    unlink_rule(r);
    if (g->hashed && !g->count)
        kill_record(dev, s, g->bound, (uintptr_t)g | 1);
    /* Without memory for a shorter array or a better bound, the old ones stay right. */
    if (g->hashed && g->count && ++g->deleted > g->count / 2 && !publish(dev, s, g, lowest_rank(g))) {
        filter_renew(dev, g);
        g->deleted = 0;
    }
    group_drop_if_empty(s, g);
    if (s->n_dead > s->n_records / 2)
        publish(dev, s, NULL, 0);
}
