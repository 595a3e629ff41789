/* bits.h - big-endian loads and stores, the bit fields of headers. Lengths are checked by the caller. */
#ifndef SW_BITS_H
#define SW_BITS_H

#include "sw.h"

/* n bytes (1..8) as a number. */
static inline uint64_t sw_ld(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    switch (n) {
    case 1:
        return p[0];
    case 2: {
        uint16_t t;
        memcpy(&t, p, 2);
        return __builtin_bswap16(t);
    }
    case 4: {
        uint32_t t;
        memcpy(&t, p, 4);
        return __builtin_bswap32(t);
    }
    case 8: {
        uint64_t t;
        memcpy(&t, p, 8);
        return __builtin_bswap64(t);
    }
    case 3:
        return sw_ld(p, 2) << 8 | p[2];
    case 5:
        return sw_ld(p, 4) << 8 | p[4];
    case 6:
        return sw_ld(p, 4) << 16 | sw_ld(p + 4, 2);
    case 7:
        return sw_ld(p, 4) << 24 | sw_ld(p + 4, 3);
    default:
        return v;
    }
}

/* The low n bytes (1..8) of v. */
static inline void sw_st(uint8_t *p, unsigned n, uint64_t v)
{
    switch (n) {
    case 1:
        p[0] = (uint8_t)v;
        break;
    case 2: {
        uint16_t t = __builtin_bswap16((uint16_t)v);
        memcpy(p, &t, 2);
        break;
    }
    case 4: {
        uint32_t t = __builtin_bswap32((uint32_t)v);
        memcpy(p, &t, 4);
        break;
    }
    case 8: {
        uint64_t t = __builtin_bswap64(v);
        memcpy(p, &t, 8);
        break;
    }
    case 3:
        sw_st(p, 2, v >> 8);
        p[2] = (uint8_t)v;
        break;
    case 5:
        sw_st(p, 4, v >> 8);
        p[4] = (uint8_t)v;
        break;
    case 6:
        sw_st(p, 4, v >> 16);
        sw_st(p + 4, 2, v);
        break;
    case 7:
        sw_st(p, 4, v >> 24);
        sw_st(p + 4, 3, v);
        break;
    default:
        break;
    }
}

/* A word whose bytes in memory are v's, from the highest. */
static inline uint64_t sw_big(uint64_t v) { return __builtin_bswap64(v); }

/* width bits (1..64) that start bit bits after p. */
static inline uint64_t sw_bits(const uint8_t *p, unsigned bit, unsigned width)
{
    p += bit / 8;
    bit %= 8;
    unsigned n = (bit + width + 7) / 8;
    uint64_t mask = width == 64 ? UINT64_MAX : (1ULL << width) - 1;
    if (n <= 8)
        return sw_ld(p, n) >> (8 * n - bit - width) & mask;
    /* nine bytes: 64 bits, then the rest of the last byte */
    return (sw_ld(p, 8) << (bit + width - 64) | p[8] >> (72 - bit - width)) & mask;
}

static inline u128 sw_bits128(const uint8_t *p, unsigned bit, unsigned width)
{
    return (u128)sw_bits(p, bit, width - 64) << 64 | sw_bits(p, bit + width - 64, 64);
}

/* Sign-extend the low width bits (1..64, 1..128). */
static inline int64_t sw_sext(uint64_t v, unsigned width) { return (int64_t)(v << (64 - width)) >> (64 - width); }
static inline i128 sw_sext128(u128 v, unsigned width) { return (i128)(v << (128 - width)) >> (128 - width); }

/* Shifts by any amount. */
static inline uint64_t sw_shl(uint64_t v, uint64_t n) { return n < 64 ? v << n : 0; }
static inline uint64_t sw_shr(uint64_t v, uint64_t n) { return n < 64 ? v >> n : 0; }
static inline int64_t sw_sar(int64_t v, uint64_t n) { return v >> (n < 64 ? n : 63); }
static inline u128 sw_shl128(u128 v, uint64_t n) { return n < 128 ? v << n : 0; }
static inline u128 sw_shr128(u128 v, uint64_t n) { return n < 128 ? v >> n : 0; }
static inline i128 sw_sar128(i128 v, uint64_t n) { return v >> (n < 128 ? n : 127); }

/* BMv2 stops at a division by zero; here the result is 0. */
static inline uint64_t sw_div(uint64_t a, uint64_t b) { return b ? a / b : 0; }
static inline uint64_t sw_mod(uint64_t a, uint64_t b) { return b ? a % b : 0; }
static inline u128 sw_div128(u128 a, u128 b) { return b ? a / b : 0; }
static inline u128 sw_mod128(u128 a, u128 b) { return b ? a % b : 0; }

static inline uint64_t sw_clamp_u64(uint64_t v, uint64_t low, uint64_t high) { return v < low ? low : v > high ? high : v; }
static inline int64_t sw_clamp_i64(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }
static inline u128 sw_clamp_u128(u128 v, u128 low, u128 high) { return v < low ? low : v > high ? high : v; }
static inline i128 sw_clamp_i128(i128 v, i128 low, i128 high) { return v < low ? low : v > high ? high : v; }

/* An index into an array of size elements with a spare one behind them: out of range gives the spare one. */
static inline uint64_t sw_index(uint64_t i, uint64_t size) { return i < size ? i : size; }

/* A string of bits that is written from the front, as calculations and deparsers do where a header may be absent. */
typedef struct {
    uint8_t *buf;
    uint32_t bits;
} sw_writer;

/* The low width bits (1..64) of v. */
static inline void sw_put(sw_writer *w, uint64_t v, unsigned width)
{
    uint8_t *p = w->buf + w->bits / 8;
    unsigned used = w->bits % 8;
    w->bits += width;
    if (used) { /* fill the byte that was begun */
        unsigned room = 8 - used, n = width < room ? width : room;
        uint8_t chunk = (uint8_t)(v >> (width - n) & ((1u << n) - 1));
        *p = (uint8_t)((*p & (0xff00u >> used)) | (unsigned)chunk << (room - n));
        width -= n;
        p++;
    }
    if (width == 0)
        return;
    unsigned n = (width + 7) / 8;
    sw_st(p, n, width == 64 ? v : (v & ((1ULL << width) - 1)) << (8 * n - width));
}

/* n whole bytes. */
static inline void sw_put_bytes(sw_writer *w, const uint8_t *p, uint32_t n)
{
    if (w->bits % 8 == 0) {
        memcpy(w->buf + w->bits / 8, p, n);
        w->bits += 8 * n;
    } else {
        for (uint32_t i = 0; i < n; i++)
            sw_put(w, p[i], 8);
    }
}

#endif
