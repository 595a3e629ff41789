/* v1model.h - what a generated program needs of the runtime. It defines W_LIMBS first, then its phv_t, controls and
 * accessors, and includes v1model_pipeline.h last. */
#ifndef SW_V1MODEL_H
#define SW_V1MODEL_H

#include "device.h"
#include "log.h"
#include "wide.h"

/* A P4 program may compare a thing with itself or with what it cannot be, or leave an action unused; that is not the
 * generated C's fault. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#ifndef __clang__ /* which does not know it */
#pragma GCC diagnostic ignored "-Wbool-compare"
#endif

#define SW_HIT 0x80000000u    /* of what a table's function returns */
#define SW_PARSER_STEPS 65536 /* states that one packet may visit */
#define SW_LOOP_STEPS 65536   /* jumps back in one run of an action */
/* Tests define it as other values: it flips bits of what no specification fixes (clocks, random numbers, fields of headers
 * that are not valid), so that what differs in the outcome is what depends on them. SW_FILL is for such a field; unless
 * all bits are flipped, each has its own. */
#ifndef SW_UNSPECIFIED
#define SW_UNSPECIFIED 0ULL
#endif
#define SW_FILL(number) (SW_UNSPECIFIED == ~0ULL ? ~0ULL : (SW_UNSPECIFIED * (2 * (number) + 1)) >> 8)

typedef struct phv phv_t;
static void v1_mark_to_drop(sw_pkt *pkt, phv_t *phv);

static inline uint64_t sw_register_u64(sw_pkt *pkt, uint32_t reg, uint64_t index)
{
    const uint64_t *cell = sw_register_cell(pkt, reg, index);
    return cell ? *cell : 0;
}
static inline u128 sw_register_u128(sw_pkt *pkt, uint32_t reg, uint64_t index)
{
    const u128 *cell = sw_register_cell(pkt, reg, index);
    return cell ? *cell : 0;
}
static inline wide register_wide(sw_pkt *pkt, uint32_t reg, uint64_t index, int limbs)
{
    const uint64_t *cell = sw_register_cell(pkt, reg, index);
    return cell ? w_load(cell, limbs) : w_fill(0);
}

/* The low bytes of v into a varbit field of n bytes. */
static inline void w_to_bytes(uint8_t *p, uint32_t n, wide v)
{
    for (uint32_t i = 0; i < n; i++)
        p[n - 1 - i] = i < W_LIMBS * 8 ? (uint8_t)(v.l[i / 8] >> (i % 8 * 8)) : 0;
}

/* What a signed field makes of a value: within its bounds as it is, else the low bits with their sign. */
static inline i128 sw_keep_i128(i128 v, i128 low, i128 high, unsigned width)
{
    return v < low || v > high ? sw_sext128((u128)v, width) : v;
}
static inline int64_t sw_keep_i64(int64_t v, int64_t low, int64_t high, unsigned width)
{
    return v < low || v > high ? sw_sext((uint64_t)v, width) : v;
}
static inline wide w_keep(wide v, wide low, wide high, unsigned width)
{
    return w_cmp(v, low) < 0 || w_cmp(v, high) > 0 ? w_sext(v, width) : v;
}

static inline void v1_assertion_failed(sw_pkt *pkt, phv_t *phv, const char *what)
{
    sw_assertion_failed(pkt, what);
    v1_mark_to_drop(pkt, phv);
    pkt->exited = true;
}

static inline void v1_truncate(sw_pkt *pkt, uint64_t bytes)
{
    if (bytes < pkt->truncate)
        pkt->truncate = (uint32_t)bytes;
}

static inline uint64_t sw_random_between(sw_pkt *pkt, uint64_t low, uint64_t high)
{
    uint64_t span = high - low + 1, r = sw_random(pkt->dev) ^ SW_UNSPECIFIED;
    return span == 0 ? r : low + (uint64_t)((u128)r * span >> 64);
}

/* hash(): BMv2 takes a limit of 0 as 1. */
static inline uint64_t sw_hash_offset(uint64_t hash, uint64_t base, uint64_t limit)
{
    return hash % (limit ? limit : 1) + base;
}

/* push_front and pop_front of a header stack: what is shifted in is invalid. */
#define SW_STACK_PUSH(a, size, next, count)                                                                            \
    do {                                                                                                               \
        uint64_t n_ = sw_clamp_u64(count, 0, size);                                                                    \
        (next) = (uint32_t)sw_clamp_u64((next) + n_, 0, size);                                                         \
        memmove(&(a)[n_], &(a)[0], ((size) - n_) * sizeof((a)[0]));                                                    \
        for (uint64_t i_ = 0; i_ < n_; i_++)                                                                           \
            (a)[i_].valid = 0;                                                                                         \
    } while (0)
#define SW_STACK_POP(a, size, next, count)                                                                             \
    do {                                                                                                               \
        uint64_t n_ = sw_clamp_u64(count, 0, size);                                                                    \
        (next) -= (uint32_t)(n_ < (next) ? n_ : (next));                                                               \
        memmove(&(a)[0], &(a)[n_], ((size) - n_) * sizeof((a)[0]));                                                    \
        for (uint64_t i_ = (size) - n_; i_ < (size); i_++)                                                             \
            (a)[i_].valid = 0;                                                                                         \
    } while (0)
/* The same of a stack of unions, member by member: BMv2 swaps elements and invalidates none. */
#define SW_UNIONS_PUSH(a, size, count)                                                                                 \
    do {                                                                                                               \
        uint64_t n_ = count;                                                                                           \
        for (uint64_t i_ = (size) - 1; n_ > 0 && i_ >= n_ && i_ < (size); i_--)                                        \
            SW_SWAP((a)[i_], (a)[i_ - n_]);                                                                            \
    } while (0)
#define SW_UNIONS_POP(a, size, count)                                                                                  \
    do {                                                                                                               \
        uint64_t n_ = count;                                                                                           \
        for (uint64_t i_ = 0; n_ > 0 && n_ < (size) && i_ < (size) - n_; i_++)                                         \
            SW_SWAP((a)[i_], (a)[i_ + n_]);                                                                            \
    } while (0)
#define SW_NEXT_PUSH(next, size, count) ((next) = (uint32_t)sw_clamp_u64((next) + sw_clamp_u64(count, 0, size), 0, size))
#define SW_NEXT_POP(next, size, count) ((next) -= (uint32_t)sw_clamp_u64(count, 0, next))
#define SW_SWAP(x, y)                                                                                                  \
    do {                                                                                                               \
        __typeof__(x) t_ = (x);                                                                                        \
        (x) = (y);                                                                                                     \
        (y) = t_;                                                                                                      \
    } while (0)

#endif
