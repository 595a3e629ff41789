/* hash.c - the hash algorithms of BMv2, bit for bit.
 *
 * CRC parameters (Rocksoft names): crc16 is CRC-16/ARC, crc32 is CRC-32/ISO-HDLC, crcCCITT is CRC-16/IBM-3740.
 */
#include "bits.h"

typedef struct {
    uint32_t crc[8][256]; /* [k][b]: of byte b and k zero bytes */
} reflected_crc;

static reflected_crc crc16, crc32;
static uint16_t ccitt[256];

static void reflected_fill(reflected_crc *t, uint32_t poly)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ poly : crc >> 1;
        t->crc[0][i] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t i = 0; i < 256; i++)
            t->crc[k][i] = t->crc[k - 1][i] >> 8 ^ t->crc[0][t->crc[k - 1][i] & 0xff];
}

/* On loading: no packet has to ask whether the tables are there. */
__attribute__((constructor)) static void fill(void)
{
    reflected_fill(&crc16, 0xa001);
    reflected_fill(&crc32, 0xedb88320);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
        ccitt[i] = (uint16_t)crc;
    }
}

/* Slicing by eight: eight bytes at once, by tables that do not wait for one another. */
static uint32_t reflected_run(const reflected_crc *t, uint32_t crc, const uint8_t *p, size_t n)
{
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        v ^= crc;
        crc = 0;
        for (int k = 0; k < 8; k++)
            crc ^= t->crc[7 - k][v >> 8 * k & 0xff];
    }
    for (; n; n--)
        crc = crc >> 8 ^ t->crc[0][(crc ^ *p++) & 0xff];
    return crc;
}

uint64_t sw_crc16(const uint8_t *p, size_t n) { return reflected_run(&crc16, 0, p, n); }
uint64_t sw_crc32(const uint8_t *p, size_t n) { return ~reflected_run(&crc32, 0xffffffff, p, n); }

uint64_t sw_crcCCITT(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffff;
    for (; n; n--)
        crc = (crc << 8 ^ ccitt[crc >> 8 ^ *p++]) & 0xffff;
    return crc;
}

static uint64_t reflect(uint64_t v, uint32_t width)
{
    uint64_t r = 0;
    for (uint32_t i = 0; i < width; i++)
        r |= (v >> i & 1) << (width - 1 - i);
    return r;
}

/* Any width up to 64: the register lies at the top of 64 bits. */
uint64_t sw_crc_custom(const sw_crc_params *c, const uint8_t *p, size_t n)
{
    bool reflected = c->reflect_in && c->reflect_out; /* BMv2 starts with these two: */
    if (reflected && c->width == 32 && c->poly == 0x04c11db7 && c->init == 0xffffffff && c->xor_out == 0xffffffff)
        return sw_crc32(p, n);
    if (reflected && c->width == 16 && c->poly == 0x8005 && !c->init && !c->xor_out)
        return sw_crc16(p, n);
    uint32_t unused = 64 - c->width;
    uint64_t crc = c->init << unused, poly = c->poly << unused;
    for (; n; n--, p++) {
        crc ^= (c->reflect_in ? reflect(*p, 8) : *p) << 56;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 63 ? crc << 1 ^ poly : crc << 1;
    }
    crc >>= unused;
    return (c->reflect_out ? reflect(crc, c->width) : crc) ^ c->xor_out;
}

/* The Internet checksum (RFC 1071): sums in machine order, swaps at the end. */
uint64_t sw_csum16(const uint8_t *p, size_t n)
{
    u128 sum = 0;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        sum += v;
    }
    if (n & 4) {
        uint32_t v;
        memcpy(&v, p, 4);
        sum += v;
        p += 4;
    }
    if (n & 2) {
        uint16_t v;
        memcpy(&v, p, 2);
        sum += v;
        p += 2;
    }
    if (n & 1)
        sum += *p; /* as if a zero byte followed */
    uint64_t folded = (uint64_t)(sum >> 64) + (uint32_t)(sum >> 32) + (uint32_t)sum;
    while (folded >> 16)
        folded = (folded >> 16) + (folded & 0xffff);
    return __builtin_bswap16((uint16_t)~folded);
}

uint64_t sw_cksum16(const uint8_t *p, size_t n) { return sw_csum16(p, n); }

uint64_t sw_xor16(const uint8_t *p, size_t n)
{
    uint64_t all = 0;
    for (; n >= 2; n -= 2, p += 2)
        all ^= sw_ld(p, 2);
    return n ? all ^ (uint64_t)*p << 8 : all;
}

uint64_t sw_identity(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n && i < 8; i++)
        v = v << 8 | p[i];
    return v;
}

/* FNV-1 with an avalanche. BMv2 reads its bytes as signed. */
uint64_t sw_hash_ex(const uint8_t *p, size_t n)
{
    uint32_t h = 2166136261u;
    for (; n; n--)
        h = (h ^ (uint32_t)(int8_t)*p++) * 16777619u;
    h += h << 13;
    h ^= h >> 7;
    h += h << 3;
    h ^= h >> 17;
    return h + (h << 5);
}

/* ---- XXH64, seed 0 (the specification is xxHash's doc/xxhash_spec.md) ------------------------------ */

#define P1 0x9e3779b185ebca87u
#define P2 0xc2b2ae3d27d4eb4fu
#define P3 0x165667b19e3779f9u
#define P4 0x85ebca77c2b2ae63u
#define P5 0x27d4eb2f165667c5u

static uint64_t rotate(uint64_t v, int n) { return v << n | v >> (64 - n); }
static uint64_t xx_round(uint64_t acc, uint64_t lane) { return rotate(acc + lane * P2, 31) * P1; }

static uint64_t lane64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint64_t xx_stripes(const uint8_t **p, size_t *n)
{
    uint64_t acc[4] = {P1 + P2, P2, 0, 0 - P1};
    for (; *n >= 32; *n -= 32)
        for (int i = 0; i < 4; i++, *p += 8)
            acc[i] = xx_round(acc[i], lane64(*p));
    uint64_t h = rotate(acc[0], 1) + rotate(acc[1], 7) + rotate(acc[2], 12) + rotate(acc[3], 18);
    for (int i = 0; i < 4; i++)
        h = (h ^ xx_round(0, acc[i])) * P1 + P4;
    return h;
}

uint64_t sw_xxh64(const uint8_t *p, size_t n)
{
    uint64_t h = P5 + n;
    if (n >= 32) {
        size_t all = n;
        h = xx_stripes(&p, &n) + all;
    }
    for (; n >= 8; n -= 8, p += 8)
        h = rotate(h ^ xx_round(0, lane64(p)), 27) * P1 + P4;
    if (n >= 4) {
        uint32_t v;
        memcpy(&v, p, 4);
        h = rotate(h ^ v * P1, 23) * P2 + P3;
        n -= 4;
        p += 4;
    }
    for (; n; n--)
        h = rotate(h ^ *p++ * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}
