/* port.c - ports: their state, what they count, taps; outputs of virtual time. */
#include <errno.h>
#include <stdlib.h>

#include "tm_int.h"

#define OUT_FIRST 65536          /* bytes of outputs, to begin with */
#define OUT_MAX (1u << 30)       /* more are dropped until somebody takes some */
#define PCAP_MAGIC_NS 0xa1b23c4d
#define PCAP_SNAPLEN 65535
#define PCAP_ETHERNET 1

/* ---- outputs of virtual time -------------------------------------------------------------------------- */

static bool out_room(struct sw_ports *ps, size_t n)
{
    if (ps->out_end + n <= ps->out_cap)
        return true;
    if (ps->out_start)
        memmove(ps->out, ps->out + ps->out_start, ps->out_end - ps->out_start);
    ps->out_end -= ps->out_start;
    ps->out_start = 0;
    size_t cap = ps->out_cap ? ps->out_cap : OUT_FIRST;
    while (cap < 2 * ps->out_end || cap < ps->out_end + n)
        cap *= 2;
    if (cap == ps->out_cap)
        return true;
    uint8_t *out = cap <= OUT_MAX ? realloc(ps->out, cap) : NULL;
    if (!out)
        return ps->out_end + n <= ps->out_cap;
    ps->out = out;
    ps->out_cap = cap;
    return true;
}

static size_t record_size(uint32_t len) { return sizeof(sw_output) + ((size_t)len + 7) / 8 * 8; }

static bool output(sw_dev *d, uint32_t port, const uint8_t *data, uint32_t len)
{
    struct sw_ports *ps = d->ports;
    size_t size = record_size(len);
    if (!out_room(ps, size))
        return false;
    uint8_t *at = ps->out + ps->out_end;
    sw_output head = {port, len, d->now};
    memset(at + size - 8, 0, 8);
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, data, len);
    ps->out_end += size;
    return true;
}

uint32_t sw_outputs_take(sw_dev *d, uint8_t *buf, uint32_t cap)
{
    sw_lock(d);
    struct sw_ports *ps = d->ports;
    size_t end = ps->out_start;
    for (sw_output head; end < ps->out_end; end += record_size(head.len)) {
        memcpy(&head, ps->out + end, sizeof head);
        if (end + record_size(head.len) - ps->out_start > cap)
            break;
    }
    size_t n = end - ps->out_start;
    if (n)
        memcpy(buf, ps->out + ps->out_start, n);
    ps->out_start = end;
    if (ps->out_start == ps->out_end)
        ps->out_start = ps->out_end = 0;
    sw_unlock(d);
    return (uint32_t)n;
}

/* ---- taps --------------------------------------------------------------------------------------------- */

static void tap_set(sw_dev *d, sw_port *p, FILE *f)
{
    if (p->pcap)
        fclose(p->pcap);
    d->ports->n_taps += (f != NULL) - (p->pcap != NULL);
    p->pcap = f;
}

void sw_port_tap(sw_dev *d, sw_port *p, const uint8_t *data, uint32_t len)
{
    uint64_t t = d->now + d->ports->wall_ns;
    uint32_t head[4] = {(uint32_t)(t / SW_SECOND), (uint32_t)(t % SW_SECOND), len, len};
    if (fwrite(head, sizeof head, 1, p->pcap) != 1 || (len && fwrite(data, len, 1, p->pcap) != 1))
        tap_set(d, p, NULL); /* the disk is full, say */
}

static FILE *tap_open(const char *path)
{
    struct {
        uint32_t magic;
        uint16_t major, minor;
        uint32_t zone, sigfigs, snaplen, network;
    } head = {PCAP_MAGIC_NS, 2, 4, 0, 0, PCAP_SNAPLEN, PCAP_ETHERNET};
    FILE *f = fopen(path, "wbe");
    if (f && (fwrite(&head, sizeof head, 1, f) != 1 || fflush(f))) {
        int err = errno;
        fclose(f);
        errno = err;
        return NULL;
    }
    return f;
}

int sw_port_pcap(sw_dev *d, uint32_t port, const char *path)
{
    if (port >= SW_MAX_PORTS)
        return SW_EINVAL;
    FILE *f = NULL;
    if (path && !(f = tap_open(path)))
        return SW_EIO;
    sw_lock(d);
    sw_port *p = &d->ports->port[port];
    int err = p->info.exists ? SW_OK : SW_ENOENT;
    if (!err)
        tap_set(d, p, f);
    sw_unlock(d);
    if (err && f)
        fclose(f);
    return err;
}

void sw_port_pcaps_flush(sw_dev *d)
{
    for (uint32_t i = 0; d->ports->n_taps && i < SW_MAX_PORTS; i++)
        if (d->ports->port[i].pcap)
            fflush(d->ports->port[i].pcap);
}

/* ---- the wire ----------------------------------------------------------------------------------------- */

void sw_port_sent(sw_dev *d, sw_port *p, uint32_t len)
{
    p->info.tx_packets++;
    p->info.tx_bytes += len;
    d->stats.transmitted++;
}

void sw_port_send(sw_dev *d, uint32_t port, const uint8_t *data, uint32_t len)
{
    sw_port *p = &d->ports->port[port];
    if (!p->info.up) {
        p->info.tx_drops++;
        return;
    }
    if (p->pcap)
        sw_port_tap(d, p, data, len);
    if (d->ports->bench) {
        sw_port_sent(d, p, len);
        return;
    }
    if (p->wire) {
        sw_wire_send(d, port, data, len); /* counts when it goes */
        return;
    }
    if (port == d->cfg.cpu_port)
        sw_event_push(d, SW_EV_PACKET_IN, 0, 0, 0, data, len);
    if (d->cfg.realtime || output(d, port, data, len))
        sw_port_sent(d, p, len);
    else
        p->info.tx_drops++;
}

bool sw_port_is_up(sw_dev *d, uint32_t port) { return port < SW_MAX_PORTS && d->ports->port[port].info.up; }

/* ---- control ------------------------------------------------------------------------------------------ */

void sw_port_state(sw_dev *d, uint32_t port, bool admin, bool link)
{
    sw_port *p = &d->ports->port[port];
    p->admin = admin;
    p->link = link;
    if (p->info.up == (admin && link))
        return;
    p->info.up = admin && link;
    sw_event_push(d, SW_EV_PORT, port, p->info.up, 0, NULL, 0);
}

void sw_ports_list(sw_dev *d)
{
    struct sw_ports *ps = d->ports;
    ps->n_wired = 0;
    for (uint32_t i = 0; i < SW_MAX_PORTS; i++)
        if (ps->port[i].wire)
            ps->wired[ps->n_wired++] = (uint16_t)i;
}

static int add_locked(sw_dev *d, uint32_t port, const char *ifname, struct sw_wire *wire)
{
    sw_port *p = &d->ports->port[port];
    bool up = true;
    if (p->info.exists)
        return SW_EEXIST;
    if (wire && (sw_net_listen(d) || !sw_wire_link(wire, &up)))
        return SW_EIO;
    *p = (sw_port){.wire = wire};
    p->info.exists = true;
    strcpy(p->info.ifname, ifname); /* its length has been checked */
    sw_ports_list(d);
    sw_port_state(d, port, true, up);
    return SW_OK;
}

/* Ports have an interface in real time, and none in virtual time. Interfaces are opened and closed outside the lock:
 * that takes the kernel milliseconds. */
int sw_port_add(sw_dev *d, uint32_t port, const char *ifname)
{
    struct sw_wire *wire = NULL;
    if (port >= SW_MAX_PORTS || d->cfg.realtime != (*ifname != 0) ||
        strlen(ifname) >= sizeof d->ports->port[0].info.ifname)
        return SW_EINVAL;
    if (d->cfg.realtime && !(wire = sw_wire_open(ifname)))
        return SW_EIO;
    sw_lock_now(d);
    int err = add_locked(d, port, ifname, wire);
    int reason = errno;
    sw_unlock_wake(d);
    if (err)
        sw_wire_close(wire);
    errno = reason;
    return err;
}

int sw_port_remove(sw_dev *d, uint32_t port)
{
    if (port >= SW_MAX_PORTS || port == d->cfg.cpu_port)
        return SW_EINVAL;
    sw_lock_now(d);
    sw_port *p = &d->ports->port[port];
    int err = p->info.exists ? SW_OK : SW_ENOENT;
    sw_wires_flush(d);
    struct sw_wire *wire = p->wire;
    p->wire = NULL;
    p->info.exists = false;
    sw_ports_list(d);
    sw_port_state(d, port, false, false);
    tap_set(d, p, NULL);
    sw_unlock_wake(d);
    sw_wire_close(wire);
    return err;
}

int sw_port_set_up(sw_dev *d, uint32_t port, bool up)
{
    if (port >= SW_MAX_PORTS)
        return SW_EINVAL;
    sw_lock_now(d);
    sw_port *p = &d->ports->port[port];
    int err = p->info.exists ? SW_OK : SW_ENOENT;
    if (!err)
        sw_port_state(d, port, up, p->link);
    sw_unlock(d);
    return err;
}

int sw_port_get(sw_dev *d, uint32_t port, sw_port_info *info)
{
    if (port >= SW_MAX_PORTS)
        return SW_EINVAL;
    sw_lock(d);
    sw_port *p = &d->ports->port[port];
    int err = p->info.exists ? SW_OK : SW_ENOENT;
    if (p->wire)
        sw_wire_count_drops(p);
    *info = p->info;
    sw_unlock(d);
    return err;
}

int sw_ports_init(sw_dev *d)
{
    struct sw_ports *ps = d->ports = calloc(1, sizeof *ps);
    if (!ps)
        return SW_ENOMEM;
    for (uint32_t i = 0; i < SW_MAX_PORTS; i++)
        if (!d->cfg.realtime || i == d->cfg.cpu_port) {
            ps->port[i].admin = ps->port[i].link = true;
            ps->port[i].info.exists = ps->port[i].info.up = true;
        }
    return d->cfg.realtime ? sw_net_init(d) : SW_OK;
}

void sw_ports_free(sw_dev *d)
{
    struct sw_ports *ps = d->ports;
    if (!ps)
        return;
    for (uint32_t i = 0; i < SW_MAX_PORTS; i++) {
        tap_set(d, &ps->port[i], NULL);
        sw_wire_close(ps->port[i].wire);
    }
    sw_net_free(d);
    free(ps->out);
    free(ps);
    d->ports = NULL;
}
