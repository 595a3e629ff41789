/* port_afpacket.c - one Ethernet interface: a PACKET_MMAP ring to receive from, batches of sendmmsg to send.
 *
 * The ring (TPACKET_V2: a frame can be seen as soon as it is there) costs no system call a frame; when it is full the
 * kernel drops, before anything is spent on the frame. The kernel takes the VLAN tag out of a frame and leaves the
 * checksum of locally made packets to the hardware: both are put right here, in the ring.
 */
#define _GNU_SOURCE /* sendmmsg */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bits.h"
#include "tm_int.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

#define RING_BYTES (2u << 20)
#define BLOCK_BYTES 65536u
#define FRAME_EXTRA 26u /* Ethernet header and up to three VLAN tags beyond the MTU */
#define FRAME_HEAD 128u /* tpacket2_hdr, sockaddr_ll, virtio_net_hdr, alignment */
#define VLAN_TAG 4u
#define FETCH_AHEAD 4u /* frames; there are never so few in a ring */
#define FETCH_LINES 3u /* of 64 bytes: the kernel's headers and the packet's */
#define TX_BATCH 64u
#define TX_BYTES 131072u
#define SEND_BUFFER (4 << 20)

typedef struct sw_wire {
    int rx, tx;
    int ifindex;
    uint8_t *ring;
    uint32_t frame_size, per_block, n_frames;
    uint32_t next; /* the frame that comes next */
    uint32_t n_tx, tx_used;
    struct mmsghdr msg[TX_BATCH];
    struct iovec iov[TX_BATCH];
    uint8_t stage[TX_BYTES];
} sw_wire;

/* ---- open and close ----------------------------------------------------------------------------------- */

static int interface_request(int fd, unsigned long request, const char *ifname, struct ifreq *r)
{
    memset(r, 0, sizeof *r);
    strncpy(r->ifr_name, ifname, sizeof r->ifr_name - 1);
    return ioctl(fd, request, r);
}

static int option(int fd, int name, int value) { return setsockopt(fd, SOL_PACKET, name, &value, sizeof value); }

static int open_ring(sw_wire *w, uint32_t mtu)
{
    uint32_t longest = mtu + FRAME_EXTRA < SW_PACKET_MAX ? mtu + FRAME_EXTRA : SW_PACKET_MAX;
    w->frame_size = (longest + FRAME_HEAD + TPACKET_ALIGNMENT - 1) / TPACKET_ALIGNMENT * TPACKET_ALIGNMENT;
    w->per_block = BLOCK_BYTES / w->frame_size;
    w->n_frames = w->per_block * (RING_BYTES / BLOCK_BYTES);
    struct tpacket_req req = {
        .tp_block_size = BLOCK_BYTES,
        .tp_block_nr = RING_BYTES / BLOCK_BYTES,
        .tp_frame_size = w->frame_size,
        .tp_frame_nr = w->n_frames,
    };
    if (option(w->rx, PACKET_VERSION, TPACKET_V2) || option(w->rx, PACKET_VNET_HDR, 1) ||
        option(w->rx, PACKET_IGNORE_OUTGOING, 1) ||
        setsockopt(w->rx, SOL_PACKET, PACKET_RX_RING, &req, sizeof req))
        return -1;
    void *ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, w->rx, 0);
    if (ring == MAP_FAILED)
        return -1;
    w->ring = ring;
    return 0;
}

static int bind_to(int fd, int ifindex, uint16_t protocol)
{
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = ifindex};
    return bind(fd, (struct sockaddr *)&to, sizeof to);
}

static int open_rx(sw_wire *w, const char *ifname)
{
    struct ifreq r;
    w->rx = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); /* nothing comes before bind */
    if (w->rx < 0 || interface_request(w->rx, SIOCGIFHWADDR, ifname, &r))
        return -1;
    if (r.ifr_hwaddr.sa_family != ARPHRD_ETHER && r.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    if (interface_request(w->rx, SIOCGIFINDEX, ifname, &r))
        return -1;
    w->ifindex = r.ifr_ifindex;
    struct packet_mreq promiscuous = {.mr_ifindex = w->ifindex, .mr_type = PACKET_MR_PROMISC};
    if (interface_request(w->rx, SIOCGIFMTU, ifname, &r) || open_ring(w, (uint32_t)r.ifr_mtu) ||
        setsockopt(w->rx, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous))
        return -1;
    return bind_to(w->rx, w->ifindex, ETH_P_ALL);
}

static int open_tx(sw_wire *w)
{
    int size = SEND_BUFFER;
    w->tx = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (w->tx < 0 || option(w->tx, PACKET_QDISC_BYPASS, 1))
        return -1;
    setsockopt(w->tx, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size); /* without it: the system's limit */
    for (uint32_t i = 0; i < TX_BATCH; i++)
        w->msg[i].msg_hdr = (struct msghdr){.msg_iov = &w->iov[i], .msg_iovlen = 1};
    return bind_to(w->tx, w->ifindex, 0); /* receives nothing */
}

sw_wire *sw_wire_open(const char *ifname)
{
    sw_wire *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->rx = w->tx = -1;
    if (open_rx(w, ifname) || open_tx(w)) {
        int err = errno;
        sw_wire_close(w);
        errno = err;
        return NULL;
    }
    return w;
}

void sw_wire_close(sw_wire *w)
{
    if (!w)
        return;
    if (w->ring)
        munmap(w->ring, RING_BYTES);
    if (w->rx >= 0)
        close(w->rx);
    if (w->tx >= 0)
        close(w->tx);
    free(w);
}

int sw_wire_ifindex(const sw_wire *w) { return w->ifindex; }
int sw_wire_fd(const sw_wire *w) { return w->rx; }

bool sw_wire_fits(const sw_wire *w, uint32_t mtu)
{
    return mtu + FRAME_EXTRA + FRAME_HEAD <= w->frame_size || w->frame_size >= SW_PACKET_MAX + FRAME_HEAD;
}

/* IFF_RUNNING follows the carrier with some delay; so the driver is asked, where it can tell. */
bool sw_wire_link(sw_wire *w, bool *up)
{
    struct ifreq r = {.ifr_ifindex = w->ifindex};
    if (ioctl(w->rx, SIOCGIFNAME, &r) || ioctl(w->rx, SIOCGIFFLAGS, &r))
        return false;
    short flags = r.ifr_flags;
    struct ethtool_value carrier = {.cmd = ETHTOOL_GLINK};
    r.ifr_data = (char *)&carrier;
    if (ioctl(w->rx, SIOCETHTOOL, &r))
        carrier.data = (flags & IFF_RUNNING) != 0;
    *up = (flags & IFF_UP) && carrier.data;
    return true;
}

/* An interface that goes down leaves an error in its sockets: poll returns at once until it is read. */
void sw_wire_clear_error(sw_wire *w)
{
    int err;
    socklen_t len = sizeof err;
    getsockopt(w->rx, SOL_SOCKET, SO_ERROR, &err, &len);
    len = sizeof err;
    getsockopt(w->tx, SOL_SOCKET, SO_ERROR, &err, &len);
}

void sw_wire_count_drops(sw_port *p)
{
    struct tpacket_stats stats; /* since the last call */
    socklen_t len = sizeof stats;
    if (!getsockopt(p->wire->rx, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
        p->info.rx_drops += stats.tp_drops;
}

/* ---- receive ------------------------------------------------------------------------------------------ */

/* The checksum that the sender's stack left to its hardware: the field holds the pseudo header's part. */
static void complete_checksum(uint8_t *data, uint32_t len, const struct virtio_net_hdr *v)
{
    uint32_t start = v->csum_start, field = start + v->csum_offset;
    if (field + 2 > len)
        return;
    uint64_t sum = sw_csum16(data + start, len - start);
    sw_st(data + field, 2, sum ? sum : 0xffff);
}

static void take_frame(sw_dev *d, uint32_t port, struct tpacket2_hdr *h)
{
    uint8_t *data = (uint8_t *)h + h->tp_mac;
    uint32_t len = h->tp_snaplen;
    if (len < h->tp_len) { /* longer than the interface's MTU, as offloads make them, or than SW_PACKET_MAX */
        sw_port_info *info = &d->ports->port[port].info;
        info->rx_packets++;
        info->rx_bytes += h->tp_len;
        info->rx_drops++;
        return;
    }
    struct virtio_net_hdr v;
    memcpy(&v, data - sizeof v, sizeof v);
    if (v.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
        complete_checksum(data, len, &v);
    if (h->tp_status & TP_STATUS_VLAN_VALID) {
        memmove(data - VLAN_TAG, data, 2 * ETH_ALEN); /* over the virtio header */
        data -= VLAN_TAG;
        len += VLAN_TAG;
        sw_st(data + 2 * ETH_ALEN, 2, h->tp_status & TP_STATUS_VLAN_TPID_VALID ? h->tp_vlan_tpid : ETH_P_8021Q);
        sw_st(data + 2 * ETH_ALEN + 2, 2, h->tp_vlan_tci);
    }
    sw_tm_receive(d, port, data, len);
}

/* The frame that comes `ahead` of them after the next. */
static uint8_t *frame(const sw_wire *w, uint32_t ahead)
{
    uint32_t i = w->next + ahead;
    i = i < w->n_frames ? i : i - w->n_frames;
    return w->ring + (size_t)(i / w->per_block) * BLOCK_BYTES + i % w->per_block * w->frame_size;
}

/* Another processor has written the frames: without this every one costs several cache misses in a row. */
static void fetch_ahead(const sw_wire *w)
{
    const uint8_t *f = frame(w, FETCH_AHEAD);
    for (uint32_t line = 0; line < FETCH_LINES; line++)
        __builtin_prefetch(f + 64 * line);
}

uint32_t sw_wire_receive(sw_dev *d, uint32_t port, uint32_t most)
{
    uint32_t n = 0;
    for (sw_wire *w; n < most && (w = d->ports->port[port].wire); n++) { /* it may go while we give way */
        struct tpacket2_hdr *h = (void *)frame(w, 0);
        if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
            break;
        fetch_ahead(w);
        d->now = sw_net_clock(d);
        take_frame(d, port, h);
        __atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        w->next = w->next + 1 == w->n_frames ? 0 : w->next + 1;
        sw_tm_settle(d);
        sw_give_way(d);
    }
    return n;
}

/* ---- send --------------------------------------------------------------------------------------------- */

/* What the kernel refuses (an interface that is down, a frame longer than its MTU, no buffers) is dropped. */
static void flush(sw_dev *d, sw_port *p)
{
    sw_wire *w = p->wire;
    for (uint32_t i = 0; i < w->n_tx;) {
        int n = sendmmsg(w->tx, w->msg + i, w->n_tx - i, MSG_DONTWAIT);
        if (n <= 0) {
            p->info.tx_drops++;
            i++;
            continue;
        }
        for (; n > 0; n--)
            sw_port_sent(d, p, (uint32_t)w->iov[i++].iov_len);
    }
    w->n_tx = w->tx_used = 0;
}

void sw_wire_send(sw_dev *d, uint32_t port, const uint8_t *data, uint32_t len)
{
    sw_port *p = &d->ports->port[port];
    sw_wire *w = p->wire;
    if (w->n_tx == TX_BATCH || w->tx_used + len > TX_BYTES)
        flush(d, p);
    w->iov[w->n_tx++] = (struct iovec){w->stage + w->tx_used, len};
    memcpy(w->stage + w->tx_used, data, len);
    w->tx_used += (len + 63) / 64 * 64;
}

void sw_wires_flush(sw_dev *d)
{
    for (uint32_t i = 0; i < d->ports->n_wired; i++) {
        sw_port *p = &d->ports->port[d->ports->wired[i]];
        if (p->wire->n_tx)
            flush(d, p);
    }
}
