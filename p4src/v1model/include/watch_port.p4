/* Whether a port that is no link, such as a host's, has a carrier; of a link, judge_link tells.
 *
 * Reads hdr.timer; writes a digest as a port loses its carrier, again after every REPEAT_TIMERS timers without one, and
 * as it gets it back. */

struct port_event_t {
    bit<16> port;
    bit<8> is_down;
    ticks_t time;
}

control WatchPort(in headers_t hdr, in standard_metadata_t standard_metadata) {
    // indexed by port; written here only: timers since it was told that the port is down, 0 while it is up
    register<bit<16>, port_index_t>(PORTS) down_timers_register;

    port_index_t index = (port_index_t)hdr.timer.port;
    bit<16> timers = 0;
    bool tell = false;

    apply {
        down_timers_register.read(timers, index);
        if (hdr.timer.is_down == 1) {
            tell = timers == 0 || timers == REPEAT_TIMERS;
            timers = tell ? 16w1 : timers + 1;
        } else {
            tell = timers != 0;
            timers = 0;
        }
        down_timers_register.write(index, timers);
        if (tell) {
            digest<port_event_t>(1, { hdr.timer.port, hdr.timer.is_down, standard_metadata.ingress_global_timestamp });
        }
    }
}
