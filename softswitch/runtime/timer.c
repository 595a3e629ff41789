/* timer.c - timers in a binary heap that knows where each of them is, and shapers. Nothing here allocates. */
#include "tm_int.h"

/* ---- timers ------------------------------------------------------------------------------------------- */

static bool earlier(const sw_heap_slot *a, const sw_heap_slot *b)
{
    return a->time != b->time ? a->time < b->time : a->seq < b->seq;
}

static void place(struct sw_tm *tm, uint32_t pos, sw_heap_slot slot)
{
    tm->heap[pos] = slot;
    slot.timer->pos = pos;
}

static void sift_up(struct sw_tm *tm, uint32_t pos)
{
    sw_heap_slot slot = tm->heap[pos];
    for (; pos > 1 && earlier(&slot, &tm->heap[pos / 2]); pos /= 2)
        place(tm, pos, tm->heap[pos / 2]);
    place(tm, pos, slot);
}

static void sift_down(struct sw_tm *tm, uint32_t pos)
{
    sw_heap_slot slot = tm->heap[pos];
    for (uint32_t child; (child = 2 * pos) <= tm->n_heap; pos = child) {
        if (child < tm->n_heap && earlier(&tm->heap[child + 1], &tm->heap[child]))
            child++;
        if (!earlier(&tm->heap[child], &slot))
            break;
        place(tm, pos, tm->heap[child]);
    }
    place(tm, pos, slot);
}

void sw_timer_set(sw_dev *d, sw_timer *t, uint64_t when)
{
    struct sw_tm *tm = d->tm;
    if (!t->pos)
        t->pos = ++tm->n_heap; /* there is room: one timer a packet, port, fault line and generator */
    tm->heap[t->pos] = (sw_heap_slot){when, tm->seq++, t};
    sift_up(tm, t->pos);
    sift_down(tm, t->pos);
}

void sw_timer_cancel(sw_dev *d, sw_timer *t)
{
    struct sw_tm *tm = d->tm;
    uint32_t pos = t->pos;
    if (!pos)
        return;
    t->pos = 0;
    sw_heap_slot last = tm->heap[tm->n_heap--];
    if (last.timer == t)
        return;
    place(tm, pos, last);
    sift_up(tm, pos);
    sift_down(tm, last.timer->pos);
}

/* ---- shapers ------------------------------------------------------------------------------------------ */

void sw_shaper_charge(sw_shaper *s, uint64_t t, uint64_t units)
{
    if (!s->rate)
        return;
    if (t > sw_shaper_ready(s)) { /* it was idle */
        s->free_ns = t;
        s->frac = 0;
    }
    s->charged_ns = s->free_ns;
    s->charged = units;
    units += s->frac;
    s->free_ns += units / s->rate;
    s->frac = units % s->rate;
}

void sw_shaper_set(sw_shaper *s, uint64_t rate)
{
    bool was_limited = s->rate != 0;
    s->rate = rate;
    s->free_ns = s->charged_ns;
    s->frac = 0;
    if (was_limited && rate) {
        s->free_ns += s->charged / rate;
        s->frac = s->charged % rate;
    }
}
