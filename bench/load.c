/* load.c - offers frames to one interface and counts what comes out of another, both in the current namespace.
 *
 *     load TX_IF RX_IF CPU FRAME_BYTES BURST RATE SECONDS OFFSET:SIZE:VALUE... < headers
 *
 * Standard input has headers of 42 bytes (Ethernet, IPv4, UDP), up to HEADERS_MAX. Each in turn, round and round, makes
 * BURST frames (2 and more) of FRAME_BYTES with zeros behind it: the kernel gets them as one large UDP packet and cuts
 * it into frames (UDP GSO), which is how a single processor offers millions of frames a second. RATE is in frames a
 * second. This process stays on CPU, and so does the kernel's work up to the switch's socket.
 *
 * What comes in on RX_IF is counted where every OFFSET:SIZE:VALUE holds (SIZE 1, 2 or 4 bytes, big-endian). That costs
 * next to nothing: a filter in the kernel selects, and a socket that nobody reads drops and counts.
 * Prints a JSON object: sent, ns (from the first send to after the last), received_in_time (until then), received
 * (until 100 ms pass without one).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 50000u      /* bursts go every tick, as many as the rate wants */
#define SLEEP_NS 20000u     /* a wait that is shorter is spent awake */
#define QUIET_NS 100000000u /* nothing came for so long: nothing more will */
#define HEADER_BYTES 42u
#define IP_LENGTH 16u  /* where the lengths of IP and UDP are */
#define UDP_LENGTH 38u
#define UDP_START 34
#define HEADERS_MAX 65536u
#define CHECKS_MAX 8
#define GSO_UDP_L4 5 /* VIRTIO_NET_HDR_GSO_UDP_L4 */
#define SECOND 1000000000ull

typedef struct {
    int fd;
    uint32_t burst, n_headers, next;
    uint8_t (*headers)[HEADER_BYTES];
    struct virtio_net_hdr offload;
    struct iovec part[3]; /* offload, header, zeros */
    uint64_t sent;
} generator;

static void die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, errno ? strerror(errno) : "bad value");
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t when)
{
    struct timespec t = {.tv_sec = (time_t)(when / SECOND), .tv_nsec = (long)(when % SECOND)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static int packet_socket(const char *ifname, uint16_t protocol)
{
    struct sockaddr_ll at = {
        .sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = (int)if_nametoindex(ifname)};
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (!at.sll_ifindex || fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at))
        die(ifname);
    return fd;
}

/* ---- the sink ----------------------------------------------------------------------------------------- */

static void accept_only(int fd, char **checks, int n)
{
    struct sock_filter code[2 * CHECKS_MAX + 2];
    unsigned short at = 0, end = (unsigned short)(2 * n);
    for (int i = 0; i < n; i++) {
        unsigned offset, size, value;
        if (sscanf(checks[i], "%u:%u:%i", &offset, &size, (int *)&value) != 3)
            die(checks[i]);
        uint16_t width = size == 1 ? BPF_B : size == 2 ? BPF_H : BPF_W;
        code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | width | BPF_ABS, offset);
        code[at] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, (uint8_t)(end - at));
        at++;
    }
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 1);
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {at, code};
    int smallest = 0;
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof smallest))
        die("filter");
}

/* Frames since the last call. */
static uint64_t count(int fd)
{
    struct tpacket_stats stats;
    socklen_t len = sizeof stats;
    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
        die("statistics");
    return stats.tp_packets;
}

static uint64_t count_rest(int fd)
{
    uint64_t all = 0, last = now_ns();
    while (now_ns() - last < QUIET_NS) {
        uint64_t more = count(fd);
        if (more)
            last = now_ns();
        all += more;
        sleep_until(now_ns() + QUIET_NS / 10);
    }
    return all;
}

/* ---- the generator ------------------------------------------------------------------------------------ */

static void put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void generator_init(generator *g, const char *ifname, uint32_t frame_bytes, uint32_t burst)
{
    int one = 1;
    uint32_t payload = (frame_bytes - HEADER_BYTES) * burst;
    if (frame_bytes <= HEADER_BYTES || burst < 2 || payload > 65535 - HEADER_BYTES)
        die("FRAME_BYTES or BURST");
    g->burst = burst;
    g->headers = malloc(HEADERS_MAX * sizeof *g->headers);
    g->n_headers = g->headers ? (uint32_t)fread(g->headers, sizeof *g->headers, HEADERS_MAX, stdin) : 0;
    if (!g->n_headers)
        die("headers");
    for (uint32_t i = 0; i < g->n_headers; i++) {
        put16(g->headers[i] + IP_LENGTH, 28 + payload);
        put16(g->headers[i] + UDP_LENGTH, 8 + payload);
    }
    g->offload = (struct virtio_net_hdr){
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = GSO_UDP_L4, .hdr_len = HEADER_BYTES,
        .gso_size = (uint16_t)(frame_bytes - HEADER_BYTES), .csum_start = UDP_START, .csum_offset = 6};
    g->part[0] = (struct iovec){&g->offload, sizeof g->offload};
    g->part[1].iov_len = HEADER_BYTES;
    g->part[2] = (struct iovec){calloc(1, payload), payload};
    g->fd = packet_socket(ifname, 0);
    if (!g->part[2].iov_base || setsockopt(g->fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one))
        die("PACKET_VNET_HDR");
}

static void send_burst(generator *g)
{
    g->part[1].iov_base = g->headers[g->next];
    g->next = g->next + 1 == g->n_headers ? 0 : g->next + 1;
    if (writev(g->fd, g->part, 3) < 0)
        die("send");
    g->sent += g->burst;
}

/* Returns ns. What it could not send in time (others had the processor) is not made up for later. */
static uint64_t generate(generator *g, uint64_t rate, uint64_t ns)
{
    uint64_t start = now_ns(), last = start, credit = 0, price = g->burst * SECOND; /* credit: frames times SECOND */
    for (uint64_t t = start; t - start < ns; t = now_ns()) {
        credit += (t - last < 2 * TICK_NS ? t - last : 2 * TICK_NS) * rate;
        last = t;
        for (; credit >= price; credit -= price)
            send_burst(g);
        uint64_t wake = t + TICK_NS;
        if (wake > now_ns() + SLEEP_NS)
            sleep_until(wake);
        while (now_ns() < wake)
            ;
    }
    return now_ns() - start;
}

int main(int argc, char **argv)
{
    static generator g;
    int checks = argc - 8;
    if (checks < 0 || checks > CHECKS_MAX)
        die("usage: load TX_IF RX_IF CPU FRAME_BYTES BURST RATE SECONDS OFFSET:SIZE:VALUE... < headers");
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET((unsigned)atoi(argv[3]), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus))
        die(argv[3]);
    prctl(PR_SET_TIMERSLACK, 1000ul);
    generator_init(&g, argv[1], (uint32_t)atoi(argv[4]), (uint32_t)atoi(argv[5]));
    int sink = packet_socket(argv[2], ETH_P_ALL);
    accept_only(sink, argv + 8, checks);
    count(sink);
    uint64_t ns = generate(&g, (uint64_t)atoll(argv[6]), (uint64_t)(atof(argv[7]) * (double)SECOND));
    uint64_t in_time = count(sink);
    printf("{\"sent\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"received_in_time\":%" PRIu64 ",\"received\":%" PRIu64 "}\n",
           g.sent, ns, in_time, in_time + count_rest(sink));
    return 0;
}
