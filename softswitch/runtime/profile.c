/* profile.c - action profiles and selectors. */
#include <stdlib.h>

#include "table_int.h"

/* ---- members --------------------------------------------------------------------------------------- */

static sw_profile *profile_of(sw_dev *dev, uint32_t profile)
{
    return profile < dev->prog->n_profiles ? dev->tables->profiles + profile : NULL;
}

/* A member's further slots hold it too, but only its first makes its handle. */
static sw_member *member_of(const sw_profile *p, uint64_t handle)
{
    sw_member *m = sw_slots_get(&p->members, handle);
    return m && m->handle == handle ? m : NULL;
}

/* BMv2's P4Runtime server makes copies of a member for groups that give it a weight above one; a copy takes a slot. */
static int member_widen(sw_profile *p, sw_member *m, uint32_t weight)
{
    if (m->n_slots >= weight)
        return SW_OK;
    uint32_t *slots = realloc(m->slots, weight * sizeof *slots);
    if (slots)
        m->slots = slots;
    uint32_t *users = realloc(m->users, (weight + 1) * sizeof *users);
    if (users)
        m->users = users;
    if (!slots || !users)
        return SW_ENOMEM;
    while (m->n_slots < weight) {
        int err = sw_slots_take(&p->members, m, m->slots + m->n_slots);
        if (err)
            return err;
        m->users[++m->n_slots] = 0;
    }
    return SW_OK;
}

/* Give back the slots that no group's weight needs any more. */
static void member_narrow(sw_profile *p, sw_member *m)
{
    while (m->n_slots > 1 && !m->users[m->n_slots])
        sw_slots_give(&p->members, m->slots[--m->n_slots]);
}

static void member_free(sw_profile *p, sw_member *m)
{
    while (m->n_slots)
        sw_slots_give(&p->members, m->slots[--m->n_slots]);
    free(m->slots);
    free(m->users);
    free(m->args);
    free(m);
}

static int member_add(sw_dev *dev, sw_profile *p, uint32_t action, const uint8_t *args, uint32_t len, uint64_t *handle)
{
    if (!p)
        return SW_ENOENT;
    if (!sw_args_ok(dev->prog, action, args, len))
        return SW_EINVAL;
    if (p->desc->max_size && p->n_members >= p->desc->max_size)
        return SW_EFULL;
    sw_member *m = calloc(1, sizeof *m);
    if (!m)
        return SW_ENOMEM;
    m->args = aligned_alloc(16, dev->tables->args_size);
    if (!m->args || member_widen(p, m, 1)) {
        member_free(p, m);
        return SW_ENOMEM;
    }
    m->action = action;
    sw_args_pack(dev->prog, action, args, m->args);
    *handle = m->handle = sw_slots_handle(&p->members, m->slots[0]);
    p->n_members++;
    return SW_OK;
}

int sw_member_add(sw_dev *dev, uint32_t profile, uint32_t action, const uint8_t *args, uint32_t args_len,
                  uint64_t *handle)
{
    sw_write_begin(dev);
    return sw_write_end(dev, member_add(dev, profile_of(dev, profile), action, args, args_len, handle));
}

static int member_modify(sw_dev *dev, sw_profile *p, uint64_t handle, uint32_t action, const uint8_t *args,
                         uint32_t len)
{
    sw_member *m = p ? member_of(p, handle) : NULL;
    if (!m)
        return SW_ENOENT;
    if (!sw_args_ok(dev->prog, action, args, len))
        return SW_EINVAL;
    sw_lock(dev);
    m->action = action;
    sw_args_pack(dev->prog, action, args, m->args);
    sw_unlock(dev);
    return SW_OK;
}

int sw_member_modify(sw_dev *dev, uint32_t profile, uint64_t handle, uint32_t action, const uint8_t *args,
                     uint32_t args_len)
{
    sw_write_begin(dev);
    return sw_write_end(dev, member_modify(dev, profile_of(dev, profile), handle, action, args, args_len));
}

int sw_member_delete(sw_dev *dev, uint32_t profile, uint64_t handle)
{
    sw_write_begin(dev);
    sw_profile *p = profile_of(dev, profile);
    sw_member *m = p ? member_of(p, handle) : NULL;
    int result = !m ? SW_ENOENT : m->refs ? SW_EBUSY : SW_OK;
    if (!result) { /* nothing refers to it, so no packet sees it */
        member_free(p, m);
        p->n_members--;
    }
    return sw_write_end(dev, result);
}

/* ---- groups ---------------------------------------------------------------------------------------- */

#define WEIGHTS_MAX 65535 /* of a group, whatever its maximum: each unit takes memory */

static int by_slot(const void *a, const void *b)
{
    const sw_choice *x = a, *y = b;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

static int members_check(const sw_profile *p, const sw_group_member *members, uint32_t n, uint32_t max_size,
                         uint32_t *total)
{
    uint64_t sum = 0, most = max_size && max_size < WEIGHTS_MAX ? max_size : WEIGHTS_MAX;
    for (uint32_t i = 0; i < n; i++) {
        if (!member_of(p, members[i].member))
            return SW_ENOENT;
        if (!members[i].weight || (members[i].watch_port != SW_NO_PORT && members[i].watch_port >= SW_MAX_PORTS))
            return SW_EINVAL;
        sum += members[i].weight;
    }
    if (sum > most)
        return SW_EFULL;
    *total = (uint32_t)sum;
    return SW_OK;
}

/* Count the group in (1) or out (-1) of its members' users, and drop slots that this leaves without use. */
static void members_use(sw_profile *p, const sw_group_member *members, uint32_t n, int more)
{
    for (uint32_t i = 0; i < n; i++) {
        sw_member *m = member_of(p, members[i].member);
        m->users[members[i].weight] += (uint32_t)more;
        m->refs += (uint32_t)more;
    }
}

static void members_narrow(sw_profile *p, const sw_group_member *members, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        member_narrow(p, member_of(p, members[i].member));
}

/* Fill in the new choices; the members have been checked, but for one being there twice. */
static int choices_make(sw_profile *p, const sw_group_member *members, uint32_t n, sw_choice *choices)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        sw_member *m = member_of(p, members[i].member);
        int err = member_widen(p, m, members[i].weight);
        if (err)
            return err;
        for (uint32_t w = 0; w < members[i].weight; w++)
            choices[total++] = (sw_choice){m, m->slots[w], members[i].watch_port};
    }
    qsort(choices, total, sizeof *choices, by_slot);
    for (uint32_t i = 1; i < total; i++)
        if (choices[i].slot == choices[i - 1].slot)
            return SW_EINVAL;
    return SW_OK;
}

static int group_set(sw_dev *dev, sw_profile *p, sw_group *g, const sw_group_member *members, uint32_t n)
{
    uint32_t total, n_before = g->n_members;
    int err = members_check(p, members, n, g->max_size, &total);
    if (err)
        return err;
    sw_choice *choices = malloc((total + 1) * sizeof *choices), *old_choices = g->choices;
    sw_group_member *copy = malloc((n + 1) * sizeof *copy), *before = g->members;
    err = choices && copy ? choices_make(p, members, n, choices) : SW_ENOMEM;
    if (err) {
        members_narrow(p, members, n);
        free(choices);
        free(copy);
        return err;
    }
    bool watched = false;
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = members[i];
        watched |= members[i].watch_port != SW_NO_PORT;
    }
    sw_lock(dev);
    g->choices = choices;
    g->n_choices = total;
    g->watched = watched;
    sw_unlock(dev);
    g->members = copy;
    g->n_members = n;
    members_use(p, copy, n, 1);
    members_use(p, before, n_before, -1);
    members_narrow(p, before, n_before);
    free(old_choices);
    free(before);
    return SW_OK;
}

static void group_free(sw_group *g)
{
    free(g->choices);
    free(g->members);
    free(g);
}

static int group_add(sw_dev *dev, sw_profile *p, const sw_group_member *members, uint32_t n, uint32_t max_size,
                     uint64_t *handle)
{
    if (!p)
        return SW_ENOENT;
    if (!p->desc->selector)
        return SW_EINVAL;
    sw_group *g = calloc(1, sizeof *g);
    if (!g)
        return SW_ENOMEM;
    g->hash = p->desc->hash;
    g->max_size = max_size;
    uint32_t slot;
    int err = sw_slots_take(&p->groups, g, &slot);
    if (!err) {
        g->handle = sw_slots_handle(&p->groups, slot);
        err = group_set(dev, p, g, members, n);
        if (err)
            sw_slots_give(&p->groups, slot);
    }
    if (err)
        group_free(g);
    else
        *handle = g->handle;
    return err;
}

int sw_group_add(sw_dev *dev, uint32_t profile, const sw_group_member *members, uint32_t n, uint32_t max_size,
                 uint64_t *handle)
{
    sw_write_begin(dev);
    return sw_write_end(dev, group_add(dev, profile_of(dev, profile), members, n, max_size, handle));
}

int sw_group_modify(sw_dev *dev, uint32_t profile, uint64_t handle, const sw_group_member *members, uint32_t n)
{
    sw_write_begin(dev);
    sw_profile *p = profile_of(dev, profile);
    sw_group *g = p ? sw_slots_get(&p->groups, handle) : NULL;
    return sw_write_end(dev, g ? group_set(dev, p, g, members, n) : SW_ENOENT);
}

int sw_group_delete(sw_dev *dev, uint32_t profile, uint64_t handle)
{
    sw_write_begin(dev);
    sw_profile *p = profile_of(dev, profile);
    sw_group *g = p ? sw_slots_get(&p->groups, handle) : NULL;
    int result = !g ? SW_ENOENT : g->refs ? SW_EBUSY : SW_OK;
    if (!result) { /* no entry refers to it, so no packet sees it */
        members_use(p, g->members, g->n_members, -1);
        members_narrow(p, g->members, g->n_members);
        sw_slots_give(&p->groups, (uint32_t)handle - 1);
        group_free(g);
    }
    return sw_write_end(dev, result);
}

/* ---- targets --------------------------------------------------------------------------------------- */

int sw_target_find(sw_profile *p, uint64_t handle, bool is_group, sw_target *t)
{
    *t = (sw_target){is_group ? NULL : member_of(p, handle), is_group ? sw_slots_get(&p->groups, handle) : NULL};
    return t->member || t->group ? SW_OK : SW_ENOENT;
}

void sw_target_use(sw_target t, int more)
{
    if (t.member)
        t.member->refs += (uint32_t)more;
    if (t.group)
        t.group->refs += (uint32_t)more;
}

static bool is_live(sw_dev *dev, const sw_choice *c)
{
    return c->watch_port == SW_NO_PORT || sw_port_is_up(dev, c->watch_port);
}

/* As BMv2: the low 32 bits of the hash, modulo the number of live members (copies for weight included), counted in
 * the order of their slots. */
const sw_member *sw_group_choose(sw_pkt *pkt, const sw_group *g)
{
    uint32_t live = g->n_choices, hash = g->hash ? (uint32_t)g->hash(pkt) : 0;
    if (g->watched)
        for (uint32_t i = 0; i < g->n_choices; i++)
            live -= !is_live(pkt->dev, g->choices + i);
    if (!live)
        return NULL;
    uint32_t nth = hash % live;
    if (live == g->n_choices)
        return g->choices[nth].member;
    const sw_choice *c = g->choices;
    for (;; c++)
        if (is_live(pkt->dev, c) && !nth--)
            return c->member;
}

void sw_profile_free(sw_profile *p)
{
    for (uint32_t i = 0; i < p->groups.cap; i++)
        if (p->groups.obj[i])
            group_free(p->groups.obj[i]);
    for (uint32_t i = 0; i < p->members.cap; i++)
        if (p->members.obj[i])
            member_free(p, p->members.obj[i]);
    sw_slots_free(&p->groups);
    sw_slots_free(&p->members);
}
