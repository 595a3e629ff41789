/* realtime.c - the packet thread of a device in real time, its clock, and news of interfaces.
 *
 * One thread does everything that packets need, to completion. It holds the device lock while it is busy and gives it
 * to control threads between two packets; it polls the rings while packets come, and sleeps in ppoll otherwise. The
 * system tells of interfaces by netlink: one that is down or gone is a port that is down, and comes back by its name.
 */
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tm_int.h"

#define BURST 64            /* frames of one port, before the next port has its turn */
#define SPIN_NS 20000       /* after the last frame, before it sleeps */
#define SLEEP_MIN_NS 5000   /* what is due sooner is waited for awake */
#define NEWS_NS 1000000     /* how often it looks for netlink messages while it is busy */
#define YIELDS 100          /* times that control threads are waited for */
#define NEWS_BYTES 32768
#define LOWER_UP (1u << 16) /* IFF_LOWER_UP, the carrier: linux/if.h does not go with net/if.h */

struct sw_net {
    uint64_t epoch; /* CLOCK_MONOTONIC at the device's 0 */
    int wake;       /* eventfd */
    int netlink;    /* of the network namespace where the first port was added; -1 before */
    bool running;
    atomic_bool stop;
    pthread_t thread;
    struct pollfd poll[SW_MAX_PORTS + 2];
};

static uint64_t clock_ns(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * SW_SECOND + (uint64_t)t.tv_nsec;
}

uint64_t sw_net_clock(sw_dev *d) { return clock_ns(CLOCK_MONOTONIC) - d->ports->net->epoch; }

void sw_net_wake(sw_dev *d)
{
    uint64_t one = 1;
    if (write(d->ports->net->wake, &one, sizeof one) < 0)
        return; /* it is awake already */
}

/* Between two packets: control threads that wait for the lock have it first. */
void sw_give_way(sw_dev *d)
{
    if (!atomic_load_explicit(&d->waiting, memory_order_relaxed))
        return;
    pthread_mutex_unlock(&d->lock);
    for (int i = 0; i < YIELDS && atomic_load(&d->waiting); i++)
        sched_yield();
    pthread_mutex_lock(&d->lock);
}

/* ---- interfaces --------------------------------------------------------------------------------------- */

static int netlink_open(void)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    struct sockaddr_nl links = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    if (fd >= 0 && bind(fd, (struct sockaddr *)&links, sizeof links)) {
        int err = errno;
        close(fd);
        errno = err;
        return -1;
    }
    return fd;
}

int sw_net_listen(sw_dev *d)
{
    struct sw_net *net = d->ports->net;
    if (net->netlink < 0)
        net->netlink = netlink_open();
    return net->netlink < 0 ? -1 : 0;
}

static void interface_gone(sw_dev *d, uint32_t port)
{
    sw_port *p = &d->ports->port[port];
    sw_wire_close(p->wire);
    p->wire = NULL;
    sw_ports_list(d);
    sw_port_state(d, port, p->admin, false);
}

/* Opens what has come back, or has to be opened anew; where that does not work the port is down. */
static void interface_open(sw_dev *d, uint32_t port)
{
    sw_port *p = &d->ports->port[port];
    bool up;
    sw_wire_close(p->wire);
    p->wire = sw_wire_open(p->info.ifname);
    if (!p->wire || !sw_wire_link(p->wire, &up)) {
        interface_gone(d, port);
        return;
    }
    sw_ports_list(d);
    sw_port_state(d, port, p->admin, up);
}

typedef struct { /* one netlink message */
    bool gone;
    int ifindex;
    bool up;
    const char *name; /* NULL when not said */
    uint32_t mtu;     /* 0 when not said */
} link_news;

static bool read_news(struct nlmsghdr *h, link_news *news)
{
    const struct ifinfomsg *info = NLMSG_DATA(h);
    if ((h->nlmsg_type != RTM_NEWLINK && h->nlmsg_type != RTM_DELLINK) || info->ifi_family != AF_UNSPEC)
        return false; /* a bridge's ports have messages of their own family */
    *news = (link_news){
        .gone = h->nlmsg_type == RTM_DELLINK,
        .ifindex = info->ifi_index,
        .up = (info->ifi_flags & IFF_UP) && (info->ifi_flags & LOWER_UP),
    };
    uint32_t left = IFLA_PAYLOAD(h);
    for (struct rtattr *a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == IFLA_IFNAME)
            news->name = RTA_DATA(a);
        else if (a->rta_type == IFLA_MTU)
            memcpy(&news->mtu, RTA_DATA(a), sizeof news->mtu);
    }
    return true;
}

static void tell_port(sw_dev *d, uint32_t port, const link_news *news)
{
    sw_port *p = &d->ports->port[port];
    if (!p->info.exists || !p->info.ifname[0])
        return;
    if (!p->wire) {
        if (!news->gone && news->name && !strcmp(news->name, p->info.ifname))
            interface_open(d, port);
    } else if (sw_wire_ifindex(p->wire) == news->ifindex) {
        if (news->gone) {
            interface_gone(d, port);
            return;
        }
        sw_wire_clear_error(p->wire);
        sw_port_state(d, port, p->admin, news->up);
        if (news->mtu && !sw_wire_fits(p->wire, news->mtu))
            interface_open(d, port);
    }
}

/* Messages were lost (or nobody read them): look at every interface. */
static void look_again(sw_dev *d)
{
    for (uint32_t i = 0; i < SW_MAX_PORTS; i++) {
        sw_port *p = &d->ports->port[i];
        bool up;
        if (!p->info.exists || !p->info.ifname[0])
            continue;
        if (!p->wire)
            interface_open(d, i);
        else if (!sw_wire_link(p->wire, &up))
            interface_gone(d, i);
        else
            sw_port_state(d, i, p->admin, up);
    }
}

static void hear_news(sw_dev *d)
{
    _Alignas(struct nlmsghdr) char buf[NEWS_BYTES];
    ssize_t n;
    if (d->ports->net->netlink < 0)
        return;
    while ((n = recv(d->ports->net->netlink, buf, sizeof buf, 0)) > 0) {
        uint32_t left = (uint32_t)n;
        link_news news;
        for (struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
            for (uint32_t i = 0; read_news(h, &news) && i < SW_MAX_PORTS; i++)
                tell_port(d, i, &news);
    }
    if (n < 0 && errno == ENOBUFS)
        look_again(d);
}

/* ---- the thread --------------------------------------------------------------------------------------- */

static void wait_for_work(sw_dev *d, uint64_t ns)
{
    struct sw_net *net = d->ports->net;
    nfds_t n = 0;
    net->poll[n++] = (struct pollfd){.fd = net->wake, .events = POLLIN};
    net->poll[n++] = (struct pollfd){.fd = net->netlink, .events = POLLIN}; /* -1 is passed over */
    for (uint32_t i = 0; i < d->ports->n_wired; i++)
        net->poll[n++] = (struct pollfd){.fd = sw_wire_fd(d->ports->port[d->ports->wired[i]].wire), .events = POLLIN};
    sw_port_pcaps_flush(d);
    pthread_mutex_unlock(&d->lock);
    struct timespec timeout = {.tv_sec = (time_t)(ns / SW_SECOND), .tv_nsec = (long)(ns % SW_SECOND)};
    ppoll(net->poll, n, &timeout, NULL);
    pthread_mutex_lock(&d->lock);
    d->now = sw_net_clock(d);
    uint64_t woken;
    if (net->poll[0].revents && read(net->wake, &woken, sizeof woken) < 0)
        return;
    bool errors = false;
    for (nfds_t i = 2; i < n; i++)
        errors |= (net->poll[i].revents & POLLERR) != 0;
    for (uint32_t i = 0; errors && i < d->ports->n_wired; i++)
        sw_wire_clear_error(d->ports->port[d->ports->wired[i]].wire);
    if (net->poll[1].revents)
        hear_news(d);
}

static void *packet_thread(void *arg)
{
    sw_dev *d = arg;
    struct sw_net *net = d->ports->net;
    uint64_t last_frame = 0, last_news = 0;
    prctl(PR_SET_NAME, "softswitch");
    prctl(PR_SET_TIMERSLACK, 1000ul);
    pthread_mutex_lock(&d->lock);
    d->now = sw_net_clock(d);
    look_again(d);
    while (!atomic_load(&net->stop)) {
        for (uint32_t i = 0; i < d->ports->n_wired; i++) {
            if (sw_wire_receive(d, d->ports->wired[i], BURST)) {
                last_frame = d->now;
                sw_wires_flush(d);
            }
        }
        sw_tm_run(d, sw_net_clock(d));
        sw_wires_flush(d);
        if (d->now - last_news >= NEWS_NS) {
            last_news = d->now;
            hear_news(d);
        }
        uint64_t next = sw_tm_next(d);
        if (next <= d->now || d->now - last_frame < SPIN_NS || next - d->now < SLEEP_MIN_NS)
            sw_give_way(d);
        else
            wait_for_work(d, next - d->now);
    }
    sw_port_pcaps_flush(d);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* Signals are for the program's other threads. */
static int create_thread(sw_dev *d)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = pthread_create(&d->ports->net->thread, NULL, packet_thread, d);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return err;
}

int sw_start(sw_dev *d)
{
    if (!d->cfg.realtime)
        return SW_EINVAL;
    struct sw_net *net = d->ports->net;
    int err = 0;
    sw_lock(d);
    bool was_running = net->running;
    if (!was_running) {
        atomic_store(&net->stop, false);
        err = create_thread(d);
        net->running = !err;
    }
    sw_unlock(d);
    if (was_running)
        return SW_EBUSY;
    errno = err;
    return err ? SW_EIO : SW_OK;
}

int sw_stop(sw_dev *d)
{
    if (!d->cfg.realtime)
        return SW_EINVAL;
    struct sw_net *net = d->ports ? d->ports->net : NULL;
    if (!net)
        return SW_OK;
    sw_lock(d);
    bool was_running = net->running;
    net->running = false;
    atomic_store(&net->stop, true);
    sw_net_wake(d);
    sw_unlock(d);
    if (was_running)
        pthread_join(net->thread, NULL);
    return SW_OK;
}

int sw_net_init(sw_dev *d)
{
    struct sw_net *net = d->ports->net = calloc(1, sizeof *net);
    if (!net)
        return SW_ENOMEM;
    net->netlink = -1;
    net->epoch = clock_ns(CLOCK_MONOTONIC);
    d->ports->wall_ns = clock_ns(CLOCK_REALTIME);
    net->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return net->wake < 0 ? SW_EIO : SW_OK;
}

void sw_net_free(sw_dev *d)
{
    struct sw_net *net = d->ports->net;
    if (!net)
        return;
    if (net->wake >= 0)
        close(net->wake);
    if (net->netlink >= 0)
        close(net->netlink);
    free(net);
}
