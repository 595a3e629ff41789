/* table.c - match-action tables: entries and lookup. The searching is in match.c and rules.c.
 *
 * Order of equal matches, as in BMv2 and its P4Runtime server: of two entries of equal priority the one in the lower
 * slot wins (BMv2 walks the entries by handle and keeps the first of the best). Larger priorities win: the server
 * turns them round before BMv2, where smaller ones win.
 */
#include <stdlib.h>

#include "table_int.h"

static sw_table *table_of(sw_dev *dev, uint32_t table)
{
    return table < dev->prog->n_tables ? dev->tables->tables + table : NULL;
}

/* ---- lookup ---------------------------------------------------------------------------------------- */

static sw_trie *lpm_trie(const sw_table *t, const uint64_t *key)
{
    if (!t->exact_mask)
        return (sw_trie *)&t->trie;
    uint64_t exact[SW_KEY_WORDS];
    for (uint32_t w = 0; w < t->nwords; w++)
        exact[w] = key[w] & t->exact_mask[w];
    return sw_map_get(&t->tries, exact);
}

static inline sw_node *find(const sw_table *t, const uint64_t *key)
{
    if (t->match == SW_EXACT)
        return sw_map_get(&t->index, key);
    if (t->match == SW_LPM) {
        uint64_t bits[SW_LPM_WORDS + 2];
        const sw_trie *trie = lpm_trie(t, key);
        if (!trie)
            return NULL;
        sw_lpm_bits(t, key, bits);
        return sw_trie_get(trie, bits);
    }
    const sw_rule *r = sw_rules_get(&t->rules, key);
    return r ? r->owner : NULL;
}

sw_hit sw_table_apply(sw_pkt *pkt, uint32_t table, const uint64_t *key)
{
    sw_dev *dev = pkt->dev;
    const sw_table *t = dev->tables->tables + table;
    sw_node *found = find(t, key), *node = found ? found : t->miss;
    sw_entry *e = &node->e;
    /* BMv2 counts hits only, and has no way to read the default entry's counter; P4Runtime has, so it counts here. */
    e->packets++;
    e->bytes += pkt->ingress_length;
    e->last_hit_ns = dev->now;
    e->idle_notified = false;
    sw_hit hit = {found ? e : NULL, e->action, e->args};
    if (!t->indirect)
        return hit;
    const sw_member *m = node->target.member;
    if (node->target.group) {
        m = sw_group_choose(pkt, node->target.group);
        if (!m) {
            dev->stats.no_live_member++;
            hit.action = SW_DROP_ACTION;
            return hit;
        }
    }
    if (m) {
        hit.action = m->action;
        hit.args = m->args;
    }
    return hit;
}

/* ---- entries --------------------------------------------------------------------------------------- */

/* One block of memory: the node, its args, key and mask, and its rule with mask and value. */
static sw_node *node_new(sw_dev *dev, const sw_table *t)
{
    size_t head = sizeof(sw_node) + dev->tables->args_size, keys = 2 * t->nwords * sizeof(uint64_t);
    size_t size = (head + keys + (sw_uses_rules(t) ? sizeof(sw_rule) + keys : 0) + 63) & ~(size_t)63;
    sw_node *n = aligned_alloc(64, size);
    if (!n)
        return NULL;
    memset(n, 0, size);
    n->key = (uint64_t *)((uint8_t *)n + head);
    n->mask = n->key + t->nwords;
    n->rule = sw_uses_rules(t) ? (sw_rule *)(n->mask + t->nwords) : NULL;
    n->e.table = (uint32_t)(t - dev->tables->tables);
    n->e.action = SW_NO_ACTION;
    return n;
}

/* Put the node where packets find it. */
static int node_link(sw_dev *dev, sw_table *t, sw_node *n, const sw_match_spec *spec)
{
    int err;
    if (sw_uses_rules(t)) {
        uint64_t *mask = (uint64_t *)(n->rule + 1), *value = mask + t->nwords;
        bool check = sw_rule_spec(t, n, mask, value);
        *n->rule = (sw_rule){
            .rank = (uint64_t)((int64_t)INT32_MAX - n->e.priority) << 32 | n->slot,
            .mask = mask,
            .value = value,
            .low = check ? n->key : NULL,
            .high = check ? n->mask : NULL,
            .owner = n,
        };
        return sw_rules_add(dev, &t->rules, n->rule);
    }
    if (t->match == SW_EXACT)
        return SW_OK; /* the index is what packets look into */
    uint64_t bits[SW_LPM_WORDS + 2], exact[SW_KEY_WORDS];
    sw_lpm_bits(t, n->key, bits);
    sw_trie *trie = lpm_trie(t, n->key);
    if (trie)
        return sw_trie_put(dev, trie, bits, spec->prefix, n);
    trie = calloc(1, sizeof *trie); /* the first prefix with these exact fields */
    if (!trie)
        return SW_ENOMEM;
    err = sw_trie_put(NULL, trie, bits, spec->prefix, n);
    for (uint32_t w = 0; w < t->nwords; w++)
        exact[w] = n->key[w] & t->exact_mask[w];
    if (!err)
        err = sw_map_put(dev, &t->tries, exact, trie);
    if (err) {
        sw_trie_free(trie);
        free(trie);
    }
    return err;
}

static void node_unlink(sw_dev *dev, sw_table *t, sw_node *n)
{
    if (sw_uses_rules(t))
        sw_rules_del(dev, &t->rules, n->rule);
    if (t->match != SW_LPM)
        return;
    uint64_t bits[SW_LPM_WORDS + 2], exact[SW_KEY_WORDS];
    sw_trie *trie = lpm_trie(t, n->key);
    uint32_t prefix = SW_LPM_LEAD + 8 * t->lpm->nbytes - t->lpm->width;
    for (uint32_t b = 0; b < t->lpm->nbytes; b++)
        prefix += (uint32_t)__builtin_popcount(((uint8_t *)n->mask)[t->lpm->offset + b]);
    sw_lpm_bits(t, n->key, bits);
    sw_trie_del(dev, trie, bits, prefix);
    if (!t->exact_mask || trie->inner || trie->outer)
        return;
    for (uint32_t w = 0; w < t->nwords; w++)
        exact[w] = n->key[w] & t->exact_mask[w];
    sw_map_del(dev, &t->tries, exact);
    sw_trie_free(trie);
    free(trie);
}

/* ---- adding, changing, deleting -------------------------------------------------------------------- */

/* Check what the entry is to do: an action with arguments, or a target that exists. */
static int check_effect(sw_dev *dev, const sw_table *t, const sw_entry_spec *spec, sw_target *target)
{
    *target = (sw_target){0};
    if (t->indirect)
        return sw_target_find(dev->tables->profiles + t->desc->profile, spec->target, spec->target_is_group, target);
    return sw_args_ok(dev->prog, spec->action, spec->args, spec->args_len) ? SW_OK : SW_EINVAL;
}

/* Before packets see the node, or under the lock. */
static void set_effect(sw_dev *dev, const sw_table *t, sw_node *n, const sw_entry_spec *spec, sw_target target)
{
    sw_target_use(target, 1);
    sw_target_use(n->target, -1);
    n->target = target;
    n->e.target = spec->target;
    n->e.target_is_group = spec->target_is_group;
    if (t->indirect)
        return;
    n->e.action = spec->action;
    sw_args_pack(dev->prog, spec->action, spec->args, n->e.args);
}

static int table_add(sw_dev *dev, sw_table *t, const sw_entry_spec *in, uint64_t now, uint64_t *handle)
{
    sw_match_spec spec;
    sw_target target;
    int err = t ? sw_spec_read(t, in, &spec) : SW_ENOENT;
    if (!err)
        err = check_effect(dev, t, in, &target);
    if (err)
        return err;
    if (sw_map_get(&t->index, spec.index))
        return SW_EEXIST;
    if (t->slots.used >= t->desc->max_size)
        return SW_EFULL;
    sw_node *n = node_new(dev, t);
    if (!n || sw_slots_take(&t->slots, n, &n->slot)) {
        free(n);
        return SW_ENOMEM;
    }
    memcpy(n->key, spec.key, t->nwords * sizeof(uint64_t));
    memcpy(n->mask, spec.mask, t->nwords * sizeof(uint64_t));
    n->e.handle = sw_slots_handle(&t->slots, n->slot);
    n->e.priority = spec.priority;
    n->e.last_hit_ns = now;
    set_effect(dev, t, n, in, target);
    err = sw_map_put(t->match == SW_EXACT ? dev : NULL, &t->index, spec.index, n);
    if (!err) {
        err = node_link(dev, t, n, &spec);
        if (err)
            sw_map_del(dev, &t->index, spec.index);
    }
    if (err) {
        sw_target_use(target, -1);
        sw_slots_give(&t->slots, n->slot);
        free(n);
        return err;
    }
    *handle = n->e.handle;
    if (in->idle_timeout_ns) {
        sw_lock(dev);
        sw_age_start(dev, n, in->idle_timeout_ns, now);
        sw_unlock(dev);
    }
    return SW_OK;
}

int sw_table_add(sw_dev *dev, uint32_t table, const sw_entry_spec *spec, uint64_t *handle)
{
    uint64_t now = sw_now(dev);
    sw_write_begin(dev);
    return sw_write_end(dev, table_add(dev, table_of(dev, table), spec, now, handle));
}

int sw_table_modify(sw_dev *dev, uint32_t table, uint64_t handle, const sw_entry_spec *spec)
{
    uint64_t now = sw_now(dev);
    sw_target target;
    sw_write_begin(dev);
    sw_table *t = table_of(dev, table);
    sw_node *n = t ? sw_slots_get(&t->slots, handle) : NULL;
    int err = n ? check_effect(dev, t, spec, &target) : SW_ENOENT;
    if (!err) {
        sw_lock(dev);
        set_effect(dev, t, n, spec, target);
        sw_age_start(dev, n, spec->idle_timeout_ns, now);
        sw_unlock(dev);
    }
    return sw_write_end(dev, err);
}

static void node_drop(sw_dev *dev, sw_table *t, sw_node *n)
{
    uint64_t index[SW_INDEX_WORDS];
    size_t size = t->nwords * sizeof(uint64_t);
    memcpy(index, n->key, size);
    memcpy(index + t->nwords, n->mask, size);
    index[2 * t->nwords] = (uint32_t)n->e.priority;
    sw_map_del(dev, &t->index, index);
    node_unlink(dev, t, n);
    sw_lock(dev);
    sw_age_stop(n);
    sw_unlock(dev);
    sw_target_use(n->target, -1);
    sw_slots_give(&t->slots, n->slot);
    free(n);
}

int sw_table_delete(sw_dev *dev, uint32_t table, uint64_t handle)
{
    sw_write_begin(dev);
    sw_table *t = table_of(dev, table);
    sw_node *n = t ? sw_slots_get(&t->slots, handle) : NULL;
    if (n)
        node_drop(dev, t, n);
    return sw_write_end(dev, n ? SW_OK : SW_ENOENT);
}

int sw_table_find(sw_dev *dev, uint32_t table, const sw_entry_spec *in, uint64_t *handle)
{
    sw_match_spec spec;
    sw_write_begin(dev);
    sw_table *t = table_of(dev, table);
    int err = t ? sw_spec_read(t, in, &spec) : SW_ENOENT;
    if (!err) {
        const sw_node *n = sw_map_get(&t->index, spec.index);
        err = n ? SW_OK : SW_ENOENT;
        if (n)
            *handle = n->e.handle;
    }
    return sw_write_end(dev, err);
}

/* ---- default entries, counts, statistics ----------------------------------------------------------- */

static void default_action(sw_dev *dev, sw_table *t, uint32_t action, const uint8_t *args)
{
    sw_node *n = t->miss;
    sw_lock(dev);
    n->e.action = action;
    if (action != SW_NO_ACTION)
        sw_args_pack(dev->prog, action, args, n->e.args);
    sw_target_use(n->target, -1);
    n->target = (sw_target){0};
    n->e.target = SW_NO_HANDLE;
    sw_unlock(dev);
}

int sw_table_set_default(sw_dev *dev, uint32_t table, uint32_t action, const uint8_t *args, uint32_t args_len)
{
    sw_write_begin(dev);
    sw_table *t = table_of(dev, table);
    int err = !t ? SW_ENOENT : sw_args_ok(dev->prog, action, args, args_len) ? SW_OK : SW_EINVAL;
    if (!err)
        default_action(dev, t, action, args);
    return sw_write_end(dev, err);
}

int sw_table_set_default_target(sw_dev *dev, uint32_t table, uint64_t handle, bool is_group)
{
    sw_target target;
    sw_write_begin(dev);
    sw_table *t = table_of(dev, table);
    int err = !t ? SW_ENOENT : !t->indirect ? SW_EINVAL : SW_OK;
    if (!err)
        err = sw_target_find(dev->tables->profiles + t->desc->profile, handle, is_group, &target);
    if (!err) {
        sw_entry_spec spec = {.target = handle, .target_is_group = is_group};
        sw_lock(dev);
        set_effect(dev, t, t->miss, &spec, target);
        sw_unlock(dev);
    }
    return sw_write_end(dev, err);
}

int sw_table_reset_default(sw_dev *dev, uint32_t table)
{
    sw_write_begin(dev);
    sw_table *t = table_of(dev, table);
    if (t)
        default_action(dev, t, (uint32_t)t->desc->default_action, t->desc->default_args);
    return sw_write_end(dev, t ? SW_OK : SW_ENOENT);
}

int64_t sw_table_count(sw_dev *dev, uint32_t table)
{
    sw_write_begin(dev);
    const sw_table *t = table_of(dev, table);
    int64_t count = t ? (int64_t)t->slots.used : SW_ENOENT;
    sw_write_end(dev, SW_OK);
    return count;
}

sw_entry *sw_table_entry(sw_dev *dev, uint32_t table, uint64_t handle)
{
    sw_table *t = table_of(dev, table);
    sw_node *n = !t ? NULL : handle == SW_NO_HANDLE ? t->miss : sw_slots_get(&t->slots, handle);
    return n ? &n->e : NULL;
}

int sw_entry_stats_get(sw_dev *dev, uint32_t table, uint64_t handle, sw_entry_stats *stats)
{
    uint64_t now = sw_now(dev);
    sw_write_begin(dev);
    const sw_entry *e = sw_table_entry(dev, table, handle);
    if (e) {
        sw_lock(dev);
        *stats = (sw_entry_stats){e->packets, e->bytes, now > e->last_hit_ns ? now - e->last_hit_ns : 0};
        sw_unlock(dev);
    }
    return sw_write_end(dev, e ? SW_OK : SW_ENOENT);
}

int sw_entry_counter_set(sw_dev *dev, uint32_t table, uint64_t handle, uint64_t packets, uint64_t bytes)
{
    sw_write_begin(dev);
    sw_entry *e = sw_table_entry(dev, table, handle);
    if (e) {
        sw_lock(dev);
        e->packets = packets;
        e->bytes = bytes;
        sw_unlock(dev);
    }
    return sw_write_end(dev, e ? SW_OK : SW_ENOENT);
}

/* ---- making and ending ----------------------------------------------------------------------------- */

static int table_init(sw_dev *dev, sw_table *t, const sw_table_desc *desc)
{
    t->desc = desc;
    t->match = desc->match;
    t->indirect = desc->impl != SW_SIMPLE;
    t->nwords = desc->key_stride / 8;
    sw_map_init(&t->index, t->match == SW_EXACT ? t->nwords : 2 * t->nwords + 1);
    sw_map_init(&t->tries, t->nwords);
    sw_rules_init(&t->rules, t->nwords, desc->fields, desc->n_fields);
    if (t->nwords > SW_KEY_WORDS)
        return SW_EINVAL;
    for (uint32_t i = 0; t->match == SW_LPM && i < desc->n_fields; i++)
        if (desc->fields[i].match == SW_LPM)
            t->lpm = desc->fields + i;
    if (t->match == SW_LPM && (!t->lpm || t->lpm->nbytes > 8 * SW_LPM_WORDS))
        return SW_EINVAL;
    t->miss = node_new(dev, t);
    if (!t->miss)
        return SW_ENOMEM;
    default_action(dev, t, (uint32_t)desc->default_action, desc->default_args);
    if (!t->lpm || desc->n_fields == 1)
        return SW_OK;
    t->exact_mask = malloc(desc->key_stride);
    if (!t->exact_mask)
        return SW_ENOMEM;
    memset(t->exact_mask, 0xff, desc->key_stride);
    memset((uint8_t *)t->exact_mask + t->lpm->offset, 0, t->lpm->nbytes);
    return SW_OK;
}

static void table_free(sw_table *t)
{
    for (uint32_t i = 0; i < t->slots.cap; i++)
        free(t->slots.obj[i]);
    for (size_t i = 0; t->tries.used && i <= t->tries.mask; i++) {
        sw_trie *trie = (sw_trie *)(uintptr_t)t->tries.slots[i * (t->nwords + 1)];
        if (trie)
            sw_trie_free(trie);
        free(trie);
    }
    sw_map_free(&t->tries);
    sw_map_free(&t->index);
    sw_trie_free(&t->trie);
    sw_rules_free(&t->rules);
    sw_slots_free(&t->slots);
    free(t->exact_mask);
    free(t->miss);
}

int sw_tables_init(sw_dev *dev)
{
    const sw_program *prog = dev->prog;
    struct sw_tables *ts = dev->tables = calloc(1, sizeof *ts);
    if (!ts)
        return SW_ENOMEM;
    pthread_mutex_init(&ts->writer, NULL);
    ts->args_size = 16;
    for (uint32_t i = 0; i < prog->n_actions; i++) {
        size_t size = (prog->actions[i].args_size + 15u) & ~15u;
        ts->args_size = size > ts->args_size ? size : ts->args_size;
    }
    ts->tables = calloc(prog->n_tables + 1, sizeof *ts->tables);
    ts->profiles = calloc(prog->n_profiles + 1, sizeof *ts->profiles);
    ts->value_sets = calloc(prog->n_value_sets + 1, sizeof *ts->value_sets);
    if (!ts->tables || !ts->profiles || !ts->value_sets)
        return SW_ENOMEM;
    for (uint32_t i = 0; i < prog->n_profiles; i++)
        ts->profiles[i].desc = prog->profiles + i;
    int err = SW_OK;
    for (uint32_t i = 0; !err && i < prog->n_tables; i++)
        err = table_init(dev, ts->tables + i, prog->tables + i);
    for (uint32_t i = 0; !err && i < prog->n_value_sets; i++)
        err = sw_value_set_init(ts->value_sets + i, prog->value_sets + i);
    return err;
}

void sw_tables_free(sw_dev *dev)
{
    struct sw_tables *ts = dev->tables;
    if (!ts)
        return;
    for (uint32_t i = 0; ts->tables && i < dev->prog->n_tables && ts->tables[i].desc; i++)
        table_free(ts->tables + i);
    for (uint32_t i = 0; ts->profiles && i < dev->prog->n_profiles; i++)
        sw_profile_free(ts->profiles + i);
    for (uint32_t i = 0; ts->value_sets && i < dev->prog->n_value_sets; i++)
        sw_value_set_free(ts->value_sets + i);
    free(ts->tables);
    free(ts->profiles);
    free(ts->value_sets);
    pthread_mutex_destroy(&ts->writer);
    free(ts);
    dev->tables = NULL;
}
