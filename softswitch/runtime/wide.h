/* wide.h - integers wider than 128 bits: two's complement in W_LIMBS 64-bit limbs, the least first.
 * The generated program defines W_LIMBS so that no intermediate value of it overflows. */
#ifndef SW_WIDE_H
#define SW_WIDE_H

#include "bits.h"

typedef struct {
    uint64_t l[W_LIMBS];
} wide;

static inline wide w_fill(uint64_t v)
{
    wide r;
    for (int i = 0; i < W_LIMBS; i++)
        r.l[i] = v;
    return r;
}
static inline wide w_u128(u128 v)
{
    wide r = w_fill(0);
    r.l[0] = (uint64_t)v;
    r.l[1] = (uint64_t)(v >> 64);
    return r;
}
static inline wide w_i128(i128 v)
{
    wide r = w_fill(v < 0 ? UINT64_MAX : 0);
    r.l[0] = (uint64_t)v;
    r.l[1] = (uint64_t)((u128)v >> 64);
    return r;
}
static inline u128 w_low128(wide v) { return (u128)v.l[1] << 64 | v.l[0]; }
static inline bool w_negative(wide v) { return v.l[W_LIMBS - 1] >> 63; }

/* n limbs, as an unsigned number or with the sign of the last one. */
static inline wide w_load(const uint64_t *p, int n)
{
    wide r = w_fill(0);
    for (int i = 0; i < n; i++)
        r.l[i] = p[i];
    return r;
}
static inline wide w_load_signed(const uint64_t *p, int n)
{
    wide r = w_fill(p[n - 1] >> 63 ? UINT64_MAX : 0);
    for (int i = 0; i < n; i++)
        r.l[i] = p[i];
    return r;
}
static inline void w_store(uint64_t *p, int n, wide v) { memcpy(p, v.l, (size_t)n * 8); }
static inline wide w_from_bytes(const uint8_t *p, uint32_t n)
{
    wide r = w_fill(0);
    for (uint32_t i = 0; i < n && i < W_LIMBS * 8; i++)
        r.l[i / 8] |= (uint64_t)p[n - 1 - i] << (i % 8 * 8);
    return r;
}
static inline wide w_bits(const uint8_t *p, unsigned bit, unsigned width)
{
    wide r = w_fill(0);
    for (int i = 0; width > 0; i++) {
        unsigned n = width < 64 ? width : 64;
        width -= n;
        r.l[i] = sw_bits(p, bit + width, n);
    }
    return r;
}
static inline wide w_and(wide a, wide b)
{
    for (int i = 0; i < W_LIMBS; i++)
        a.l[i] &= b.l[i];
    return a;
}
static inline wide w_or(wide a, wide b)
{
    for (int i = 0; i < W_LIMBS; i++)
        a.l[i] |= b.l[i];
    return a;
}
static inline wide w_xor(wide a, wide b)
{
    for (int i = 0; i < W_LIMBS; i++)
        a.l[i] ^= b.l[i];
    return a;
}
static inline wide w_not(wide a)
{
    for (int i = 0; i < W_LIMBS; i++)
        a.l[i] = ~a.l[i];
    return a;
}
static inline wide w_add(wide a, wide b)
{
    u128 carry = 0;
    for (int i = 0; i < W_LIMBS; i++) {
        carry += (u128)a.l[i] + b.l[i];
        a.l[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return a;
}
static inline wide w_sub(wide a, wide b) { return w_add(w_add(a, w_not(b)), w_u128(1)); }
static inline wide w_mul(wide a, wide b)
{
    wide r = w_fill(0);
    for (int i = 0; i < W_LIMBS; i++) {
        u128 carry = 0;
        for (int j = 0; i + j < W_LIMBS; j++) {
            carry += (u128)a.l[i] * b.l[j] + r.l[i + j];
            r.l[i + j] = (uint64_t)carry;
            carry >>= 64;
        }
    }
    return r;
}
static inline wide w_shl(wide a, uint64_t n)
{
    wide r = w_fill(0);
    uint64_t limbs = n / 64, bits = n % 64;
    for (uint64_t i = limbs; i < W_LIMBS; i++) {
        r.l[i] = a.l[i - limbs] << bits;
        if (bits && i > limbs)
            r.l[i] |= a.l[i - limbs - 1] >> (64 - bits);
    }
    return r;
}
static inline wide w_shr(wide a, uint64_t n) /* arithmetic */
{
    wide r = w_fill(w_negative(a) ? UINT64_MAX : 0);
    uint64_t sign = r.l[0], limbs = n / 64, bits = n % 64;
    for (uint64_t i = 0; limbs < W_LIMBS && i + limbs < W_LIMBS; i++) {
        uint64_t above = i + limbs + 1 < W_LIMBS ? a.l[i + limbs + 1] : sign;
        r.l[i] = bits ? a.l[i + limbs] >> bits | above << (64 - bits) : a.l[i + limbs];
    }
    return r;
}
static inline int w_cmp(wide a, wide b) /* -1, 0, 1; signed */
{
    if (w_negative(a) != w_negative(b))
        return w_negative(a) ? -1 : 1;
    for (int i = W_LIMBS - 1; i >= 0; i--)
        if (a.l[i] != b.l[i])
            return a.l[i] < b.l[i] ? -1 : 1;
    return 0;
}
static inline wide w_clamp(wide v, wide low, wide high)
{
    return w_cmp(v, low) < 0 ? low : w_cmp(v, high) > 0 ? high : v;
}
static inline wide w_mask(wide a, unsigned width) /* the low width bits */
{
    for (unsigned i = 0; i < W_LIMBS; i++) {
        if (width <= i * 64)
            a.l[i] = 0;
        else if (width < i * 64 + 64)
            a.l[i] &= (1ULL << width % 64) - 1;
    }
    return a;
}
static inline wide w_sext(wide a, unsigned width)
{
    bool sign = a.l[(width - 1) / 64] >> (width - 1) % 64 & 1;
    a = w_mask(a, width);
    return sign ? w_or(a, w_shl(w_fill(UINT64_MAX), width)) : a;
}

#endif
