/* slots.c - what tables and profiles share: objects by handle, action arguments. */
#include <stdlib.h>

#include "table_int.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arguments are packed for little-endian machines");

/* ---- slots ----------------------------------------------------------------------------------------- */

static int slots_grow(sw_slots *s)
{
    uint32_t cap = s->cap ? 2 * s->cap : 64;
    void **obj = realloc(s->obj, cap * sizeof *obj);
    if (obj)
        s->obj = obj;
    uint32_t *uses = realloc(s->uses, cap * sizeof *uses);
    if (uses)
        s->uses = uses;
    uint64_t *taken = realloc(s->taken, cap / 8);
    if (taken)
        s->taken = taken;
    if (!obj || !uses || !taken)
        return SW_ENOMEM;
    memset(obj + s->cap, 0, (cap - s->cap) * sizeof *obj);
    memset(uses + s->cap, 0, (cap - s->cap) * sizeof *uses);
    memset(taken + s->cap / 64, 0, (cap - s->cap) / 8);
    s->cap = cap;
    return SW_OK;
}

int sw_slots_take(sw_slots *s, void *obj, uint32_t *slot)
{
    if (s->used == s->cap) {
        int err = slots_grow(s);
        if (err)
            return err;
    }
    uint32_t w = s->from / 64;
    while (s->taken[w] == UINT64_MAX)
        w++;
    *slot = w * 64 + (uint32_t)__builtin_ctzll(~s->taken[w]);
    s->taken[w] |= 1ull << *slot % 64;
    s->from = *slot + 1;
    s->obj[*slot] = obj;
    s->used++;
    return SW_OK;
}

void sw_slots_give(sw_slots *s, uint32_t slot)
{
    s->obj[slot] = NULL;
    s->uses[slot]++;
    s->taken[slot / 64] &= ~(1ull << slot % 64);
    s->from = slot < s->from ? slot : s->from;
    s->used--;
}

void sw_slots_free(sw_slots *s)
{
    free(s->obj);
    free(s->uses);
    free(s->taken);
    *s = (sw_slots){0};
}

uint64_t sw_slots_handle(const sw_slots *s, uint32_t slot) { return (uint64_t)s->uses[slot] << 32 | (slot + 1); }

void *sw_slots_get(const sw_slots *s, uint64_t handle)
{
    uint32_t slot = (uint32_t)handle - 1;
    return slot < s->cap && sw_slots_handle(s, slot) == handle ? s->obj[slot] : NULL;
}

/* ---- arguments ------------------------------------------------------------------------------------- */

bool sw_args_ok(const sw_program *prog, uint32_t action, const uint8_t *args, uint32_t len)
{
    if (action >= prog->n_actions)
        return false;
    const sw_action_desc *a = prog->actions + action;
    for (uint32_t i = 0; i < a->n_params; i++) {
        uint32_t nbytes = (a->params[i].width + 7) / 8;
        if (len < nbytes || (nbytes && args[0] & ~sw_top_byte(a->params[i].width)))
            return false;
        args += nbytes;
        len -= nbytes;
    }
    return len == 0;
}

void sw_args_pack(const sw_program *prog, uint32_t action, const uint8_t *args, uint8_t *to)
{
    const sw_action_desc *a = prog->actions + action;
    memset(to, 0, a->args_size);
    for (uint32_t i = 0; i < a->n_params; i++) {
        uint32_t nbytes = (a->params[i].width + 7) / 8;
        for (uint32_t b = 0; b < nbytes; b++)
            to[a->params[i].offset + b] = args[nbytes - 1 - b];
        args += nbytes;
    }
}
