/* ageing.c - idle timeouts: a wheel of buckets by the time when an entry may have expired.
 * All of it runs with the device lock held.
 */
#include "table_int.h"

static void age_link(struct sw_tables *ts, sw_node *n, uint64_t when)
{
    uint64_t tick = when >> SW_AGE_SHIFT;
    sw_node **head = ts->age + (tick > ts->age_tick ? tick : ts->age_tick) % SW_AGE_BUCKETS;
    n->age_next = *head;
    n->age_link = head;
    if (*head)
        (*head)->age_link = &n->age_next;
    *head = n;
}

void sw_age_stop(sw_node *n)
{
    if (!n->age_link)
        return;
    *n->age_link = n->age_next;
    if (n->age_next)
        n->age_next->age_link = n->age_link;
    n->age_link = NULL;
}

/* As BMv2: the timeout starts anew with every write of the entry. */
void sw_age_start(sw_dev *dev, sw_node *n, uint64_t timeout, uint64_t now)
{
    sw_age_stop(n);
    n->e.idle_timeout_ns = timeout < SW_TIME_MAX ? timeout : SW_TIME_MAX;
    n->e.idle_notified = false;
    n->e.last_hit_ns = now;
    if (timeout)
        age_link(dev->tables, n, now + n->e.idle_timeout_ns);
}

void sw_table_sweep(sw_dev *dev, uint64_t now)
{
    struct sw_tables *ts = dev->tables;
    uint64_t last = now >> SW_AGE_SHIFT, tick = ts->age_tick;
    if (last - tick >= SW_AGE_BUCKETS && last > tick)
        tick = last - SW_AGE_BUCKETS + 1; /* once round is enough */
    for (; tick <= last; tick++) {
        ts->age_tick = tick;
        for (sw_node *n = ts->age[tick % SW_AGE_BUCKETS], *next; n; n = next) {
            next = n->age_next;
            uint64_t due = n->e.last_hit_ns + n->e.idle_timeout_ns;
            if (due <= now) {
                if (!n->e.idle_notified)
                    sw_event_push(dev, SW_EV_IDLE, n->e.table, n->e.handle, 0, NULL, 0);
                n->e.idle_notified = true; /* until it is hit again, which cannot expire before now + timeout */
                due = now + n->e.idle_timeout_ns;
            }
            sw_age_stop(n);
            age_link(ts, n, due);
        }
    }
}
