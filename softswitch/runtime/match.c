/* match.c - the hash map and the prefix trie. */
#include <stdlib.h>

#include "match.h"

/* ---- map ------------------------------------------------------------------------------------------- */

static uint64_t no_slots[1]; /* of an empty map: one free slot, never written */

void sw_map_init(sw_map *m, size_t nwords)
{
    *m = (sw_map){.nwords = nwords, .slots = no_slots};
}

void sw_map_free(sw_map *m)
{
    if (m->slots != no_slots)
        free(m->slots);
    sw_map_init(m, m->nwords);
}

/* At most half of the slots are used: probes stay short. */
static int map_grow(sw_dev *dev, sw_map *m)
{
    size_t n = m->nwords, slots = m->used ? 2 * (m->mask + 1) : 8;
    sw_map bigger = {.nwords = n, .mask = slots - 1, .used = m->used};
    bigger.slots = calloc(slots, (n + 1) * sizeof(uint64_t));
    if (!bigger.slots)
        return SW_ENOMEM;
    for (size_t i = 0; i <= m->mask; i++) {
        const uint64_t *from = m->slots + i * (n + 1);
        if (from[0])
            memcpy(sw_map_slot(&bigger, from + 1, n), from, (n + 1) * sizeof(uint64_t));
    }
    uint64_t *old = m->slots;
    sw_hold(dev);
    *m = bigger;
    sw_release(dev);
    if (old != no_slots)
        free(old);
    return SW_OK;
}

int sw_map_put(sw_dev *dev, sw_map *m, const uint64_t *key, void *value)
{
    uint64_t *slot = sw_map_slot(m, key, m->nwords);
    if (!slot[0]) {
        if ((m->used + 1) * 2 > m->mask + 1) {
            int err = map_grow(dev, m);
            if (err)
                return err;
            slot = sw_map_slot(m, key, m->nwords);
        }
        m->used++;
    }
    sw_hold(dev);
    slot[0] = (uintptr_t)value;
    memcpy(slot + 1, key, m->nwords * sizeof(uint64_t));
    sw_release(dev);
    return SW_OK;
}

void sw_map_del(sw_dev *dev, sw_map *m, const uint64_t *key)
{
    size_t n = m->nwords, step = n + 1;
    uint64_t *slot = sw_map_slot(m, key, n);
    if (!slot[0])
        return;
    size_t hole = (size_t)(slot - m->slots) / step;
    sw_hold(dev);
    for (size_t i = (hole + 1) & m->mask; m->slots[i * step]; i = (i + 1) & m->mask) {
        /* Move into the hole whatever would no longer be found past it. */
        size_t home = sw_map_hash(m->slots + i * step + 1, n) & m->mask;
        if (((i - home) & m->mask) < ((i - hole) & m->mask))
            continue;
        memcpy(m->slots + hole * step, m->slots + i * step, step * sizeof(uint64_t));
        hole = i;
    }
    m->slots[hole * step] = 0;
    sw_release(dev);
    m->used--;
}

/* ---- trie ------------------------------------------------------------------------------------------ */

enum { STRIDE = 6, TRIE_DEPTH = SW_LPM_WORDS * 64 / STRIDE + 2 };

/* For six bits: the bits in sw_trie.inner of all prefixes (of 0 to 5 bits) that cover them; a longer one is higher. */
#define COVER(v)                                                                                                    \
    (1ull | 1ull << (1 + ((v) >> 5)) | 1ull << (3 + ((v) >> 4)) | 1ull << (7 + ((v) >> 3)) |                        \
     1ull << (15 + ((v) >> 2)) | 1ull << (31 + ((v) >> 1)))
#define COVER4(v) COVER(v), COVER((v) + 1), COVER((v) + 2), COVER((v) + 3)
#define COVER16(v) COVER4(v), COVER4((v) + 4), COVER4((v) + 8), COVER4((v) + 12)
static const uint64_t cover[64] = {COVER16(0), COVER16(16), COVER16(32), COVER16(48)};

static inline unsigned six_bits(const uint64_t *bits, uint32_t pos)
{
    uint32_t w = pos / 64, s = pos % 64;
    uint64_t v = bits[w] << s;
    if (s > 64 - STRIDE)
        v |= bits[w + 1] >> (64 - s);
    return (unsigned)(v >> (64 - STRIDE));
}

/* How many bits of the map are set below the bit: its place in the array. */
static inline unsigned place(uint64_t map, unsigned bit)
{
    return (unsigned)__builtin_popcountll(map & ((1ull << bit) - 1));
}

static inline bool has_one(uint64_t map) { return map && !(map & (map - 1)); }

void *sw_trie_get(const sw_trie *node, const uint64_t *bits)
{
    const sw_trie *best = NULL; /* the deepest node with a prefix of these bits, and the prefix */
    unsigned bit = 0;
    for (uint32_t pos = 0;; pos += STRIDE) {
        unsigned v = six_bits(bits, pos);
        uint64_t found = node->inner & cover[v];
        if (found) {
            best = node;
            bit = 63 - (unsigned)__builtin_clzll(found);
        }
        if (!(node->outer >> v & 1))
            break;
        node = node->kids + place(node->outer, v);
    }
    if (!best)
        return NULL;
    return has_one(best->inner) ? best->val : best->vals[place(best->inner, bit)];
}

/* The bit of a prefix of len bits in the inner map of its node, which starts at pos. */
static unsigned inner_bit(const uint64_t *bits, uint32_t pos, uint32_t len)
{
    uint32_t rest = len - pos;
    return (1u << rest) - 1 + (six_bits(bits, pos) >> (STRIDE - rest));
}

void sw_trie_free(sw_trie *node)
{
    for (int i = 0; i < __builtin_popcountll(node->outer); i++)
        sw_trie_free(node->kids + i);
    free(node->kids);
    if (node->inner && !has_one(node->inner))
        free(node->vals);
    *node = (sw_trie){0};
}

/* A copy of the array of n elements with a new one at place at; NULL when out of memory. */
static void *with_gap(const void *array, size_t n, size_t at, size_t size, const void *element)
{
    char *copy = malloc((n + 1) * size);
    if (!copy)
        return NULL;
    if (n) {
        memcpy(copy, array, at * size);
        memcpy(copy + (at + 1) * size, (const char *)array + at * size, (n - at) * size);
    }
    memcpy(copy + at * size, element, size);
    return copy;
}

static int add_value(sw_dev *dev, sw_trie *node, unsigned bit, void *value)
{
    size_t n = (size_t)__builtin_popcountll(node->inner);
    void **old = n > 1 ? node->vals : NULL, **vals = NULL;
    if (n) {
        vals = with_gap(old ? old : &node->val, n, place(node->inner, bit), sizeof(void *), &value);
        if (!vals)
            return SW_ENOMEM;
    }
    sw_hold(dev);
    if (n)
        node->vals = vals;
    else
        node->val = value;
    node->inner |= 1ull << bit;
    sw_release(dev);
    free(old);
    return SW_OK;
}

static int add_kid(sw_dev *dev, sw_trie *node, unsigned v, const sw_trie *kid)
{
    size_t n = (size_t)__builtin_popcountll(node->outer);
    sw_trie *kids = with_gap(node->kids, n, place(node->outer, v), sizeof(sw_trie), kid), *old = node->kids;
    if (!kids)
        return SW_ENOMEM;
    sw_hold(dev);
    node->kids = kids;
    node->outer |= 1ull << v;
    sw_release(dev);
    free(old);
    return SW_OK;
}

int sw_trie_put(sw_dev *dev, sw_trie *node, const uint64_t *bits, uint32_t len, void *value)
{
    uint32_t pos = 0, last = len - len % STRIDE; /* where the node starts that the prefix ends in */
    while (pos < last && node->outer >> six_bits(bits, pos) & 1) {
        node = node->kids + place(node->outer, six_bits(bits, pos));
        pos += STRIDE;
    }
    if (pos == last)
        return add_value(dev, node, inner_bit(bits, pos, len), value);

    sw_trie branch = {0}; /* what is missing, from its end upwards */
    int err = add_value(NULL, &branch, inner_bit(bits, last, len), value);
    for (uint32_t p = last - STRIDE; !err && p > pos; p -= STRIDE) {
        sw_trie above = {0};
        err = add_kid(NULL, &above, six_bits(bits, p), &branch);
        if (!err)
            branch = above;
    }
    if (!err)
        err = add_kid(dev, node, six_bits(bits, pos), &branch);
    if (err)
        sw_trie_free(&branch);
    return err;
}

static void del_value(sw_dev *dev, sw_trie *node, unsigned bit)
{
    unsigned n = (unsigned)__builtin_popcountll(node->inner), at = place(node->inner, bit);
    void **old = n == 2 ? node->vals : NULL;
    sw_hold(dev);
    node->inner &= ~(1ull << bit);
    if (n == 2)
        node->val = old[!at];
    else if (n > 2)
        memmove(node->vals + at, node->vals + at + 1, (n - 1 - at) * sizeof(void *));
    sw_release(dev);
    free(old);
}

static void del_kid(sw_dev *dev, sw_trie *node, unsigned v)
{
    unsigned n = (unsigned)__builtin_popcountll(node->outer), at = place(node->outer, v);
    sw_trie gone = node->kids[at];
    sw_hold(dev);
    node->outer &= ~(1ull << v);
    memmove(node->kids + at, node->kids + at + 1, (n - 1 - at) * sizeof(sw_trie));
    sw_release(dev);
    sw_trie_free(&gone);
}

/* Deleting needs no memory: the arrays shrink in place, at most 63 elements move. */
void sw_trie_del(sw_dev *dev, sw_trie *node, const uint64_t *bits, uint32_t len)
{
    sw_trie *path[TRIE_DEPTH];
    uint32_t pos = 0, last = len - len % STRIDE;
    for (; pos < last; pos += STRIDE) {
        path[pos / STRIDE] = node;
        node = node->kids + place(node->outer, six_bits(bits, pos));
    }
    del_value(dev, node, inner_bit(bits, pos, len));
    while (pos && !node->inner && !node->outer) { /* nodes that hold nothing any more */
        pos -= STRIDE;
        node = path[pos / STRIDE];
        del_kid(dev, node, six_bits(bits, pos));
    }
}
