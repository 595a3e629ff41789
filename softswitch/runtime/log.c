/* log.c - see log.h. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"

#define MESSAGE_MAX 1024
#define TRACE_MAX (16u << 20) /* bytes that nobody has taken; what comes then is lost */

void sw_log(sw_pkt *pkt, const char *fmt, ...)
{
    char text[MESSAGE_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (n < 0)
        return;
    if (n >= MESSAGE_MAX)
        n = MESSAGE_MAX - 1;
    sw_event_push(pkt->dev, SW_EV_LOG, 0, 0, 0, text, (uint32_t)n);
}

void sw_assertion_failed(sw_pkt *pkt, const char *what)
{
    pkt->dev->stats.assert_failures++;
    sw_log(pkt, "%s", what);
}

char *sw_decimal(char *buf, u128 value, int is_signed)
{
    bool negative = is_signed && (i128)value < 0;
    char digits[40];
    int n = 0;
    if (negative)
        value = -value;
    do
        digits[n++] = (char)('0' + (int)(value % 10));
    while (value /= 10);
    char *p = buf;
    if (negative)
        *p++ = '-';
    while (n > 0)
        *p++ = digits[--n];
    *p = 0;
    return buf;
}

char *sw_hex(char *buf, const void *bytes, uint32_t n)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = bytes;
    for (uint32_t i = 0; i < n; i++) {
        buf[2 * i] = digits[p[i] >> 4];
        buf[2 * i + 1] = digits[p[i] & 15];
    }
    buf[2 * n] = 0;
    return buf;
}

char *sw_hex_limbs(char *buf, const void *limbs, uint32_t n)
{
    char *p = buf + sprintf(buf, "0x");
    for (uint32_t i = n; i > 0; i--) {
        uint64_t limb;
        memcpy(&limb, (const uint8_t *)limbs + 8 * (i - 1), 8);
        p += sprintf(p, "%016llx", (unsigned long long)limb);
    }
    return buf;
}

#ifdef SW_TRACE
void sw_trace(sw_pkt *pkt, const char *fmt, ...)
{
    sw_dev *d = pkt->dev;
    char line[2 * MESSAGE_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line) - 1, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n++] = '\n';
    if (d->trace_len + (size_t)n > TRACE_MAX)
        return;
    if (d->trace_len + (size_t)n > d->trace_cap) {
        size_t cap = 2 * d->trace_cap + (size_t)n;
        char *grown = realloc(d->trace, cap);
        if (!grown)
            return;
        d->trace = grown;
        d->trace_cap = cap;
    }
    memcpy(d->trace + d->trace_len, line, (size_t)n);
    d->trace_len += (size_t)n;
}
#endif

uint32_t sw_trace_take(sw_dev *d, char *buf, uint32_t cap)
{
    sw_lock(d);
    uint32_t n = d->trace_len < cap ? (uint32_t)d->trace_len : cap;
    memcpy(buf, d->trace ? d->trace : "", n);
    d->trace_len -= n;
    if (d->trace_len)
        memmove(d->trace, d->trace + n, d->trace_len);
    sw_unlock(d);
    return n;
}
