/* table_spec.c - what the control plane says of an entry's match: checked, normalised, in words. */
#include "table_int.h"

/* One field's normalised key and mask. */
static int field_spec(const sw_table *t, const sw_key_field *f, const sw_entry_spec *in, sw_match_spec *out)
{
    uint8_t *key = (uint8_t *)out->key + f->offset, *mask = (uint8_t *)out->mask + f->offset;
    memcpy(key, in->key + f->offset, f->nbytes);
    if (f->match == SW_EXACT)
        memset(mask, 0xff, f->nbytes);
    else if (in->mask)
        memcpy(mask, in->mask + f->offset, f->nbytes);
    else
        return SW_EINVAL;
    uint8_t top = sw_top_byte(f->width);
    if (key[0] & ~top || (f->match == SW_RANGE && (mask[0] & ~top || memcmp(key, mask, f->nbytes) > 0)))
        return SW_EINVAL;
    if (f->match == SW_RANGE)
        return SW_OK;
    mask[0] &= top;
    for (uint32_t b = 0; b < f->nbytes; b++)
        key[b] &= mask[b];
    if (f != t->lpm)
        return SW_OK;
    uint32_t ones = 0, pad = 8 * f->nbytes - f->width; /* a prefix: ones, then zeros */
    bool ended = false;
    for (uint32_t bit = pad; bit < 8 * f->nbytes; bit++) {
        bool set = mask[bit / 8] >> (7 - bit % 8) & 1;
        if (set && ended)
            return SW_EINVAL;
        ended = !set;
        ones += set;
    }
    out->prefix = SW_LPM_LEAD + pad + ones;
    return SW_OK;
}

int sw_spec_read(const sw_table *t, const sw_entry_spec *in, sw_match_spec *out)
{
    size_t size = t->nwords * sizeof(uint64_t);
    if (!t->desc->n_fields)
        return SW_EINVAL; /* a table without a key has its default entry only */
    memset(out->key, 0, size);
    memset(out->mask, 0, size);
    out->prefix = 0;
    out->priority = sw_uses_rules(t) ? in->priority : 0;
    for (uint32_t i = 0; i < t->desc->n_fields; i++) {
        int err = field_spec(t, t->desc->fields + i, in, out);
        if (err)
            return err;
    }
    memcpy(out->index, out->key, size);
    memcpy(out->index + t->nwords, out->mask, size);
    out->index[2 * t->nwords] = (uint32_t)out->priority;
    return SW_OK;
}

/* For a range field, the prefix that its bounds share. */
bool sw_rule_spec(const sw_table *t, const sw_node *n, uint64_t *mask, uint64_t *value)
{
    bool check = false;
    for (uint32_t i = 0; i < t->desc->n_fields; i++) {
        const sw_key_field *f = t->desc->fields + i;
        const uint8_t *low = (const uint8_t *)n->key + f->offset, *high = (const uint8_t *)n->mask + f->offset;
        uint8_t *m = (uint8_t *)mask + f->offset, *v = (uint8_t *)value + f->offset;
        bool shared = true;
        for (uint32_t b = 0; b < f->nbytes; b++) {
            unsigned differ = low[b] ^ high[b];
            if (f->match != SW_RANGE)
                m[b] = high[b];
            else if (!shared)
                m[b] = 0;
            else
                m[b] = (uint8_t)(differ ? 0xff00u >> (__builtin_clz(differ) - 24) : 0xff);
            if (f->match == SW_RANGE) {
                shared &= !differ;
                check |= (low[b] & ~m[b]) != 0 || (uint8_t)(high[b] | m[b]) != 0xff;
            }
            v[b] = low[b] & m[b];
        }
    }
    return check;
}
