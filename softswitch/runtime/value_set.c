/* value_set.c - parser value sets: values under masks, at parse time a member or not. */
#include <stdlib.h>

#include "table_int.h"

typedef struct {
    sw_rule rule;
    uint64_t words[]; /* value, mask */
} set_member;

int sw_value_set_init(sw_value_set *vs, const sw_value_set_desc *desc)
{
    uint32_t nwords = (desc->width + 63) / 64;
    sw_rules_init(&vs->rules, nwords, NULL, 0);
    sw_map_init(&vs->index, 2 * nwords);
    return nwords <= SW_KEY_WORDS ? SW_OK : SW_EINVAL;
}

static void member_drop(sw_dev *dev, sw_value_set *vs, set_member *m)
{
    sw_map_del(NULL, &vs->index, m->words);
    sw_rules_del(dev, &vs->rules, &m->rule);
    free(m);
}

static void clear(sw_dev *dev, sw_value_set *vs)
{
    while (vs->index.used)
        for (size_t i = 0; i <= vs->index.mask; i++) {
            uint64_t m = vs->index.slots[i * (vs->index.nwords + 1)];
            if (m)
                member_drop(dev, vs, (set_member *)(uintptr_t)m);
        }
}

void sw_value_set_free(sw_value_set *vs)
{
    if (!vs->index.slots)
        return; /* was never made */
    clear(NULL, vs);
    sw_map_free(&vs->index);
    sw_rules_free(&vs->rules);
}

/* The set of that index and the words of value and mask (NULL: all ones), or NULL where a bit is beyond the width. */
static sw_value_set *read_member(sw_dev *dev, uint32_t index, const uint8_t *value, const uint8_t *mask,
                                 uint64_t *words)
{
    sw_value_set *vs = dev->tables->value_sets + index;
    uint32_t width = dev->prog->value_sets[index].width, nbytes = (width + 7) / 8, nwords = vs->rules.nwords;
    uint8_t *v = (uint8_t *)words, *m = (uint8_t *)(words + nwords);
    if (value[0] & ~sw_top_byte(width))
        return NULL;
    memset(words, 0, 2 * nwords * sizeof *words);
    for (uint32_t b = 0; b < nbytes; b++) {
        m[b] = (uint8_t)((mask ? mask[b] : 0xff) & (b ? 0xff : sw_top_byte(width)));
        v[b] = value[b] & m[b];
    }
    return vs;
}

static int add(sw_dev *dev, uint32_t index, const uint8_t *value, const uint8_t *mask)
{
    uint64_t words[2 * SW_KEY_WORDS];
    if (index >= dev->prog->n_value_sets)
        return SW_ENOENT;
    sw_value_set *vs = read_member(dev, index, value, mask, words);
    if (!vs)
        return SW_EINVAL;
    if (sw_map_get(&vs->index, words))
        return SW_EEXIST;
    uint32_t nwords = vs->rules.nwords;
    set_member *m = malloc(sizeof *m + 2 * nwords * sizeof *words);
    if (!m)
        return SW_ENOMEM;
    memcpy(m->words, words, 2 * nwords * sizeof *words);
    m->rule = (sw_rule){.rank = vs->serial++, .value = m->words, .mask = m->words + nwords};
    int err = sw_map_put(NULL, &vs->index, words, m);
    if (!err) {
        err = sw_rules_add(dev, &vs->rules, &m->rule);
        if (err)
            sw_map_del(NULL, &vs->index, words);
    }
    if (err)
        free(m);
    return err;
}

int sw_value_set_add(sw_dev *dev, uint32_t vs, const uint8_t *value, const uint8_t *mask)
{
    sw_write_begin(dev);
    return sw_write_end(dev, add(dev, vs, value, mask));
}

int sw_value_set_delete(sw_dev *dev, uint32_t index, const uint8_t *value, const uint8_t *mask)
{
    uint64_t words[2 * SW_KEY_WORDS];
    sw_write_begin(dev);
    sw_value_set *vs = index < dev->prog->n_value_sets ? read_member(dev, index, value, mask, words) : NULL;
    set_member *m = vs ? sw_map_get(&vs->index, words) : NULL;
    if (m)
        member_drop(dev, vs, m);
    return sw_write_end(dev, m ? SW_OK : SW_ENOENT);
}

int sw_value_set_clear(sw_dev *dev, uint32_t vs)
{
    sw_write_begin(dev);
    bool exists = vs < dev->prog->n_value_sets;
    if (exists)
        clear(dev, dev->tables->value_sets + vs);
    return sw_write_end(dev, exists ? SW_OK : SW_ENOENT);
}

bool sw_value_set_has(sw_dev *dev, uint32_t vs, const uint8_t *value)
{
    uint64_t words[SW_KEY_WORDS];
    const sw_rules *rules = &dev->tables->value_sets[vs].rules;
    memset(words, 0, rules->nwords * sizeof *words);
    memcpy(words, value, (dev->prog->value_sets[vs].width + 7) / 8);
    return sw_rules_get(rules, words) != NULL;
}
