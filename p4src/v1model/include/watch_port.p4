/* Whether a port that is no link, such as a host's, has a carrier; of a link, judge_link tells.
 *
 * Reads hdr.timer; writes a digest as the carrier is lost and as it is back, and again after every REPEAT_TIMERS timers
 * without a change. */

struct port_event_t {
    bit<16> port;
    bit<8> is_down;
    ticks_t time;
}

control WatchPort(in headers_t hdr, in standard_metadata_t standard_metadata) {
    // indexed by port; written here only: what was told last, and timers until it is told again, none before the first
    register<bit<8>, port_index_t>(PORTS) told_register;
    register<bit<16>, port_index_t>(PORTS) timers_left_register;

    port_index_t index = (port_index_t)hdr.timer.port;
    bit<8> told = 0;
    bit<16> timers_left = 0;

    apply {
        told_register.read(told, index);
        timers_left_register.read(timers_left, index);
        if (timers_left == 0 || told != hdr.timer.is_down) {
            timers_left = REPEAT_TIMERS;
            told_register.write(index, hdr.timer.is_down);
            digest<port_event_t>(1, { hdr.timer.port, hdr.timer.is_down, standard_metadata.ingress_global_timestamp });
        }
        timers_left_register.write(index, timers_left - 1);
    }
}
