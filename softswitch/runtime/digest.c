/* digest.c - digest lists, as the P4Runtime specification has them (DigestEntry): samples are gathered until a list is
 * full or its oldest sample is max_timeout old; no sample is sent again before its list is acknowledged or ack_timeout
 * old; lists are numbered from 1.
 *
 * A digest keeps its samples in one queue: first the lists that were sent and still hold duplicates back, in order,
 * then the list that is being gathered. All that is in the queue is in a map too, but for samples that were let go.
 */
#include <stdlib.h>

#include "match.h"

enum {
    QUEUE = 16384,  /* samples; when they are all in sent lists the oldest list is forgotten */
    LIST_MAX = 4096 /* samples in a list */
};

typedef struct {
    uint64_t sent_ns;
    uint64_t first; /* sample */
    uint32_t samples;
    bool held; /* neither acknowledged nor too old */
} sent_list;

typedef struct {
    sw_digest_config cfg;
    uint32_t nbytes, list_max; /* of a sample; samples in the longest list */
    sw_map seen;               /* samples in the queue */
    uint64_t *queue;           /* QUEUE samples of seen.nwords words each; sample i lies at i % QUEUE */
    sent_list *lists;          /* list i lies at i % QUEUE */
    uint64_t first, sent, next; /* samples: oldest in the queue, first one not sent yet, next to come */
    uint64_t first_list, next_list;
    uint64_t gathered_since; /* ns; when sent != next */
    uint8_t *packed;         /* the list as it is sent */
} digest;

struct sw_digests {
    digest *digests;
};

static uint64_t *sample_at(const digest *d, uint64_t i) { return d->queue + i % QUEUE * d->seen.nwords; }

/* Let the samples of the list go: they may be sent again. */
static void release_list(digest *d, uint64_t list)
{
    sent_list *l = d->lists + list % QUEUE;
    for (uint64_t i = l->first; l->held && i < l->first + l->samples; i++)
        sw_map_del(NULL, &d->seen, sample_at(d, i));
    l->held = false;
}

/* Shorten the queue by its oldest list. */
static void drop_oldest(digest *d)
{
    release_list(d, d->first_list);
    d->first += d->lists[d->first_list % QUEUE].samples;
    d->first_list++;
}

static void drop_expired(digest *d, uint64_t now)
{
    while (d->first_list < d->next_list) {
        const sent_list *l = d->lists + d->first_list % QUEUE;
        if (l->held && now - l->sent_ns < d->cfg.ack_timeout_ns)
            break;
        drop_oldest(d);
    }
}

static void flush(sw_dev *dev, digest *d)
{
    uint32_t n = (uint32_t)(d->next - d->sent);
    for (uint32_t i = 0; i < n; i++)
        memcpy(d->packed + (size_t)i * d->nbytes, sample_at(d, d->sent + i), d->nbytes);
    uint64_t drops = dev->stats.event_drops[SW_EV_DIGEST];
    sw_event_push(dev, SW_EV_DIGEST, (uint32_t)(d - dev->digests->digests), d->next_list, n, d->packed, n * d->nbytes);
    d->lists[d->next_list % QUEUE] = (sent_list){dev->now, d->sent, n, true};
    if (drops != dev->stats.event_drops[SW_EV_DIGEST]) /* nobody will acknowledge it */
        release_list(d, d->next_list);
    d->next_list++;
    d->sent = d->next;
    drop_expired(d, dev->now); /* without an ack_timeout this one too */
}

void sw_digest(sw_pkt *pkt, uint32_t index, const uint8_t *sample)
{
    sw_dev *dev = pkt->dev;
    digest *d = dev->digests->digests + index;
    if (!d->cfg.enabled)
        return;
    drop_expired(d, dev->now);
    while (d->next - d->first == QUEUE)
        drop_oldest(d);
    uint64_t *words = sample_at(d, d->next);
    words[d->seen.nwords - 1] = 0;
    memcpy(words, sample, d->nbytes);
    if (sw_map_get(&d->seen, words))
        return;
    if (sw_map_put(NULL, &d->seen, words, d)) {
        dev->stats.event_drops[SW_EV_DIGEST]++;
        return;
    }
    if (d->sent == d->next++)
        d->gathered_since = dev->now;
    if (d->next - d->sent >= d->list_max || !d->cfg.max_timeout_ns)
        flush(dev, d);
}

static uint64_t flush_due(const digest *d)
{
    bool waiting = d->sent != d->next;
    return waiting ? d->gathered_since + d->cfg.max_timeout_ns : UINT64_MAX;
}

void sw_digest_sweep(sw_dev *dev, uint64_t now)
{
    for (uint32_t i = 0; i < dev->prog->n_digests; i++)
        if (flush_due(dev->digests->digests + i) <= now)
            flush(dev, dev->digests->digests + i);
}

uint64_t sw_digest_next(sw_dev *dev)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < dev->prog->n_digests; i++) {
        uint64_t due = flush_due(dev->digests->digests + i);
        next = due < next ? due : next;
    }
    return next;
}

/* ---- control --------------------------------------------------------------------------------------- */

static int digest_alloc(digest *d)
{
    if (!d->queue)
        d->queue = malloc(QUEUE * d->seen.nwords * sizeof(uint64_t));
    if (!d->lists)
        d->lists = malloc(QUEUE * sizeof *d->lists);
    if (!d->packed)
        d->packed = malloc(SW_EVENT_MAX);
    return d->queue && d->lists && d->packed ? SW_OK : SW_ENOMEM;
}

/* Forget every sample, sent or not. */
static void digest_clear(digest *d)
{
    sw_map_free(&d->seen);
    d->first = d->sent = d->next;
    d->first_list = d->next_list;
}

int sw_digest_set(sw_dev *dev, uint32_t index, const sw_digest_config *config)
{
    if (index >= dev->prog->n_digests)
        return SW_ENOENT;
    digest *d = dev->digests->digests + index;
    uint32_t fits = SW_EVENT_MAX / (d->nbytes ? d->nbytes : 1), most = fits < LIST_MAX ? fits : LIST_MAX;
    uint32_t asked = config->max_list_size;
    sw_lock(dev);
    int err = config->enabled ? digest_alloc(d) : SW_OK;
    if (!err) {
        d->cfg = *config;
        if (d->cfg.max_timeout_ns > SW_TIME_MAX)
            d->cfg.max_timeout_ns = SW_TIME_MAX;
        d->list_max = asked && asked < most ? asked : most;
        if (!config->enabled)
            digest_clear(d);
        else if (d->next - d->sent >= d->list_max || (d->next != d->sent && !config->max_timeout_ns))
            flush(dev, d);
    }
    sw_unlock(dev);
    return err;
}

int sw_digest_ack(sw_dev *dev, uint32_t index, uint64_t list)
{
    if (index >= dev->prog->n_digests)
        return SW_ENOENT;
    digest *d = dev->digests->digests + index;
    sw_lock(dev);
    if (list >= d->first_list && list < d->next_list)
        release_list(d, list);
    sw_unlock(dev);
    return SW_OK; /* a list that timed out before is as good as acknowledged */
}

int sw_digests_init(sw_dev *dev)
{
    uint32_t n = dev->prog->n_digests;
    dev->digests = calloc(1, sizeof *dev->digests);
    if (!dev->digests)
        return SW_ENOMEM;
    dev->digests->digests = calloc(n + 1, sizeof(digest));
    if (!dev->digests->digests)
        return SW_ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        digest *d = dev->digests->digests + i;
        d->nbytes = dev->prog->digests[i].nbytes;
        sw_map_init(&d->seen, d->nbytes ? (d->nbytes + 7) / 8 : 1);
        d->first_list = d->next_list = 1;
        if (d->nbytes > SW_EVENT_MAX)
            return SW_EINVAL;
    }
    return SW_OK;
}

void sw_digests_free(sw_dev *dev)
{
    if (!dev->digests)
        return;
    for (uint32_t i = 0; dev->digests->digests && i < dev->prog->n_digests; i++) {
        digest *d = dev->digests->digests + i;
        if (d->seen.slots)
            sw_map_free(&d->seen);
        free(d->queue);
        free(d->lists);
        free(d->packed);
    }
    free(dev->digests->digests);
    free(dev->digests);
    dev->digests = NULL;
}
