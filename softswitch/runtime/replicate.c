/* replicate.c - multicast groups and clone sessions. */
#include <stdlib.h>

#include "device.h"

enum { GROUPS = 65536, SESSIONS = 32768 };

struct sw_repl {
    sw_replicas *groups[GROUPS];
    sw_replicas *sessions[SESSIONS];
};

/* A set and its replicas, in one block. */
static int make(const sw_replica *replicas, uint32_t n, uint32_t truncate, sw_replicas **made)
{
    for (uint32_t i = 0; i < n; i++)
        if (replicas[i].port >= SW_MAX_PORTS || replicas[i].rid > UINT16_MAX)
            return SW_EINVAL;
    sw_replicas *set = malloc(sizeof *set + n * sizeof *replicas);
    if (!set)
        return SW_ENOMEM;
    sw_replica *copy = (sw_replica *)(set + 1);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = replicas[i];
    *set = (sw_replicas){n, truncate, copy};
    *made = set;
    return SW_OK;
}

/* Swap the set in (NULL: none). SW_ENOENT when a set was to be taken out and none was there. */
static int put(sw_dev *dev, sw_replicas **place, sw_replicas *set)
{
    sw_lock(dev);
    sw_replicas *old = *place;
    *place = set;
    sw_unlock(dev);
    int result = old || set ? SW_OK : SW_ENOENT;
    free(old);
    return result;
}

int sw_mcast_set(sw_dev *dev, uint32_t group, const sw_replica *replicas, uint32_t n)
{
    sw_replicas *set;
    if (group == 0 || group >= GROUPS)
        return SW_EINVAL;
    int err = make(replicas, n, 0, &set);
    return err ? err : put(dev, dev->repl->groups + group, set);
}

int sw_mcast_delete(sw_dev *dev, uint32_t group)
{
    return group < GROUPS ? put(dev, dev->repl->groups + group, NULL) : SW_ENOENT;
}

int sw_clone_set(sw_dev *dev, uint32_t session, const sw_replica *replicas, uint32_t n, uint32_t truncate_bytes)
{
    sw_replicas *set;
    if (session >= SESSIONS)
        return SW_EINVAL;
    int err = make(replicas, n, truncate_bytes, &set);
    return err ? err : put(dev, dev->repl->sessions + session, set);
}

int sw_clone_delete(sw_dev *dev, uint32_t session)
{
    return session < SESSIONS ? put(dev, dev->repl->sessions + session, NULL) : SW_ENOENT;
}

const sw_replicas *sw_mcast_get(sw_dev *dev, uint32_t group)
{
    return group < GROUPS ? dev->repl->groups[group] : NULL;
}

const sw_replicas *sw_clone_get(sw_dev *dev, uint32_t session)
{
    return session < SESSIONS ? dev->repl->sessions[session] : NULL;
}

int sw_repl_init(sw_dev *dev)
{
    dev->repl = calloc(1, sizeof *dev->repl);
    return dev->repl ? SW_OK : SW_ENOMEM;
}

void sw_repl_free(sw_dev *dev)
{
    if (!dev->repl)
        return;
    for (uint32_t i = 0; i < GROUPS; i++)
        free(dev->repl->groups[i]);
    for (uint32_t i = 0; i < SESSIONS; i++)
        free(dev->repl->sessions[i]);
    free(dev->repl);
    dev->repl = NULL;
}
