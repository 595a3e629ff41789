/* What is thought of a link, both ways, at each of its heartbeats.
 *
 * A timer packet for the port counts one heartbeat missed and becomes a heartbeat of ours; without a carrier the link
 * is down at once. A heartbeat received takes the count back; the neighbor's count of packets sent, against the count
 * of packets received here, is the loss of this direction. rx_state is what this end thinks of the direction towards
 * it, and it tells the neighbor; the link's state is the worse of both ends' rx_state, so both ends see a failure of
 * one direction.
 *
 * Reads hdr.timer or hdr.heartbeat and tables link and health_profile; writes whether the link is healthy, whether it
 * is better than nothing, and a digest for every change and for every window without one, so that who missed a digest,
 * or has only just come, knows after a window. Periods are counted in heartbeats, without a unit of time. */

struct link_event_t {
    bit<16> port;
    bit<8> state;        // link_state_t
    bit<8> old_state;    // the same where nothing has changed
    bit<8> reason;       // link_reason_t, of the last change
    bit<8> rx_state;     // towards this switch
    bit<8> neighbor_rx_state; // away from it
    device_id_t device;  // who was heard, 0 for nobody
    bit<16> device_port;
    bit<32> lost;        // packets lost towards this switch, of
    bit<32> expected;    // those sent in this window and, once the link is degraded, in the one before it
    bit<8> flaps;        // the link failed so often lately
    ticks_t time;
}

control JudgeLink(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                  in port_t port, in packet_count_t rx_packets, out bool judged, out bool healthy, out bool usable) {
    // indexed by port; written here only
    register<link_state_t, port_index_t>(PORTS) state_register;
    register<link_state_t, port_index_t>(PORTS) rx_state_register;
    register<link_state_t, port_index_t>(PORTS) neighbor_rx_state_register;
    register<bit<8>, port_index_t>(PORTS) missed_register;          // heartbeats in a row
    register<ticks_t, port_index_t>(PORTS) missed_time_register;    // when the last one was counted
    register<bit<8>, port_index_t>(PORTS) flaps_register;
    register<bit<32>, port_index_t>(PORTS) clean_register;          // heartbeats without loss, in a row
    register<bit<32>, port_index_t>(PORTS) sequence_register;       // of the last heartbeat received
    register<packet_count_t, port_index_t>(PORTS) window_tx_register; // both counts where the window starts
    register<packet_count_t, port_index_t>(PORTS) window_rx_register;
    register<packet_count_t, port_index_t>(PORTS) estimate_tx_register; // and where the window before it started: what
    register<packet_count_t, port_index_t>(PORTS) estimate_rx_register; // is told of a degraded link covers both
    register<bit<16>, port_index_t>(PORTS) window_age_register;     // heartbeats
    register<bit<48>, port_index_t>(PORTS) stranger_register;       // device and port of who should not be there
    register<link_reason_t, port_index_t>(PORTS) reason_register;   // of the last event
    register<bit<16>, port_index_t>(PORTS) event_age_register;      // its age, timers

    port_index_t index = (port_index_t)port;
    link_state_t old_state = link_state_t.UNKNOWN;
    link_state_t state = link_state_t.UNKNOWN;
    link_state_t rx_state = link_state_t.UNKNOWN;
    link_state_t neighbor_rx_state = link_state_t.UNKNOWN;
    link_reason_t reason = link_reason_t.NONE;
    bit<8> missed = 0;
    ticks_t missed_time = 0;
    bit<8> flaps = 0;
    bit<32> clean = 0;
    bit<32> sequence = 0;
    bit<32> sequence_step = 0;
    packet_count_t window_tx = 0;
    packet_count_t window_rx = 0;
    packet_count_t estimate_tx = 0;
    packet_count_t estimate_rx = 0;
    bit<16> window_age = 0;
    bit<48> stranger = 0;
    link_reason_t last_reason = link_reason_t.NONE;
    link_reason_t down_reason = link_reason_t.MISSED;
    bit<16> event_age = 0;
    bit<32> expected = 0;
    bit<32> lost = 0;
    bit<64> lost_ppm = 0;     // lost, times a million
    bit<64> tolerated_ppm = 0; // what may be lost, times a million
    bit<32> probation_length = 0;
    bool window_over = false;
    bool quarter_over = false;
    bool report = false;
    bool repeat = false;
    bool due = false;
    // of the tables
    device_id_t own_device = 0;
    device_id_t device = 0;
    bit<16> device_port = 0;
    profile_id_t profile_id = 0;
    bit<8> missed_limit = 0;
    ticks_t min_interval = 0;
    bit<16> probation = 0;
    bit<4> max_doublings = 0; // a probation doubled so often still fits its length
    bit<32> forgive = 0;
    bit<16> window = 0;
    bit<32> min_lost = 0;
    bit<32> loss_ppm = 0;
    bit<1> avoid_degraded = 0;

    @id(0x010000a0) @brief("Who this switch is, who must be at the other end, and how to judge.")
    action watch_link(device_id_t own_device_id, device_id_t neighbor_device_id, bit<16> neighbor_port,
                      profile_id_t profile) {
        own_device = own_device_id;
        device = neighbor_device_id;
        device_port = neighbor_port;
        profile_id = profile;
    }

    @id(0x020000a0) @brief("Links with heartbeats.")
    table link {
        key = { port: exact @name("port"); }
        actions = { watch_link; @defaultonly NoAction; }
        const default_action = NoAction();
        size = LINK_SIZE;
    }

    /* missed_heartbeats: so many missed in a row are a failure. min_interval: a timer sooner after the one before says
     * nothing about the neighbor (ticks): this switch stood still. probation: so many clean heartbeats in a row are a
     * recovery; twice as many after each failure, up to max_doublings times, until forgive clean ones in a row.
     * window: heartbeats. A link that lost min_lost packets and loss_ppm of a million within a window is degraded, at
     * once; it is no more after two windows that lost fewer than half of loss_ppm. */
    @id(0x010000a1) @brief("How to judge a link; periods are counted in heartbeats.")
    action set_health(bit<8> missed_heartbeats, ticks_t min_timer_interval, bit<16> probation_heartbeats,
                      bit<4> probation_max_doublings, bit<32> forgive_heartbeats, bit<16> window_heartbeats,
                      bit<32> window_min_lost, bit<32> window_loss_ppm, bit<1> avoid_degraded_links) {
        missed_limit = missed_heartbeats;
        min_interval = min_timer_interval;
        probation = probation_heartbeats;
        max_doublings = probation_max_doublings;
        forgive = forgive_heartbeats;
        window = window_heartbeats;
        min_lost = window_min_lost;
        loss_ppm = window_loss_ppm;
        avoid_degraded = avoid_degraded_links;
    }

    @id(0x020000a1) @brief("Ways to judge a link.")
    table health_profile {
        key = { profile_id: exact @name("profile_id"); }
        actions = { set_health; }
        // 3 missed, probation 100 to 100 * 2^6, forgiven after 10000, windows of 100, 4 lost and 500 ppm
        default_action = set_health(3, 0, 100, 6, 10000, 100, 4, 500, 1);
        size = HEALTH_PROFILE_SIZE;
    }

    @hidden action load() {
        state_register.read(old_state, index);
        rx_state_register.read(rx_state, index);
        neighbor_rx_state_register.read(neighbor_rx_state, index);
        missed_register.read(missed, index);
        missed_time_register.read(missed_time, index);
        flaps_register.read(flaps, index);
        clean_register.read(clean, index);
        sequence_register.read(sequence, index);
        window_tx_register.read(window_tx, index);
        window_rx_register.read(window_rx, index);
        estimate_tx_register.read(estimate_tx, index);
        estimate_rx_register.read(estimate_rx, index);
        window_age_register.read(window_age, index);
        stranger_register.read(stranger, index);
        reason_register.read(last_reason, index);
        event_age_register.read(event_age, index);
    }

    @hidden action store() {
        state_register.write(index, state);
        rx_state_register.write(index, rx_state);
        neighbor_rx_state_register.write(index, neighbor_rx_state);
        missed_register.write(index, missed);
        missed_time_register.write(index, missed_time);
        flaps_register.write(index, flaps);
        clean_register.write(index, clean);
        sequence_register.write(index, sequence);
        window_tx_register.write(index, window_tx);
        window_rx_register.write(index, window_rx);
        estimate_tx_register.write(index, estimate_tx);
        estimate_rx_register.write(index, estimate_rx);
        window_age_register.write(index, window_age);
        stranger_register.write(index, stranger);
        reason_register.write(index, reason);
        event_age_register.write(index, event_age);
    }

    /* The direction towards this switch changes. */
    @hidden action enter(link_state_t next_state, link_reason_t why) {
        rx_state = next_state;
        reason = why;
        clean = 0;
        report = true;
    }

    @hidden action fail(link_state_t next_state, link_reason_t why) {
        enter(next_state, why);
        flaps = flaps |+| 1;
    }

    @hidden action start_window() {
        window_tx = hdr.heartbeat.tx_packets;
        window_rx = rx_packets;
        window_age = 0;
    }

    @hidden action start_estimate() {
        estimate_tx = window_tx;
        estimate_rx = window_rx;
    }

    @hidden action grow_older() {
        window_age = window_age |+| 1;
        window_over = window_age >= window;
        quarter_over = window_age == window >> 2 || window_age == window >> 1 || window_age == window - (window >> 2);
    }

    /* What was sent and lost since both counts stood there. */
    @hidden action measure(in packet_count_t tx, in packet_count_t rx) {
        expected = hdr.heartbeat.tx_packets - tx;
        lost = expected - (rx_packets - rx);
        lost = lost[31:31] == 1 ? 0 : lost; // more came than was sent: duplicates
        lost_ppm = (bit<64>)lost * (bit<64>)PPM;
        tolerated_ppm = (bit<64>)expected * (bit<64>)loss_ppm;
    }

    @hidden action lengthen_probation() {
        probation_length = (bit<32>)probation
            << (flaps < (bit<8>)max_doublings ? flaps : (bit<8>)max_doublings);
    }

    /* A heartbeat of ours is due: what has become of the neighbor's? */
    @hidden action tick() {
        due = standard_metadata.ingress_global_timestamp - missed_time >= min_interval;
        missed = due ? missed |+| 1 : missed;
        missed_time = due ? standard_metadata.ingress_global_timestamp : missed_time;
        event_age = event_age |+| 1;
    }

    @hidden action send_heartbeat() {
        hdr.timer.setInvalid();
        hdr.heartbeat.setValid();
        hdr.heartbeat.device = own_device;
        hdr.heartbeat.port = (bit<16>)port;
        hdr.heartbeat.sequence = 0;
        hdr.heartbeat.time = 0;
        hdr.heartbeat.tx_packets = 0;
        hdr.heartbeat.rx_state = rx_state;
        hdr.ethernet.dst_addr = NEAREST_BRIDGE;
        hdr.ethernet.src_addr = HEARTBEAT_SOURCE | (mac_addr_t)own_device;
        hdr.ethernet.ether_type = ETHERTYPE_HEARTBEAT;
        standard_metadata.egress_spec = port;
    }

    @hidden action hear() {
        missed = 0;
        stranger = 0;
        sequence_step = hdr.heartbeat.sequence - sequence;
        sequence = hdr.heartbeat.sequence;
        neighbor_rx_state = hdr.heartbeat.rx_state;
    }

    @hidden action send_event() {
        digest<link_event_t>(1, {
            (bit<16>)port, (bit<8>)state, (bit<8>)old_state, (bit<8>)reason, (bit<8>)rx_state,
            (bit<8>)neighbor_rx_state, device, device_port, lost, expected, flaps,
            standard_metadata.ingress_global_timestamp
        });
    }

    apply {
        judged = link.apply().hit;
        healthy = false;
        usable = false;
        if (!judged) {
            if (hdr.heartbeat.isValid()) {
                meta.drop_reason = drop_reason_t.HEARTBEAT_MISPLACED;
            }
            return;
        }
        health_profile.apply();
        load();

        if (hdr.timer.isValid()) {
            tick();
            if (hdr.timer.is_down == 1) {
                down_reason = link_reason_t.CARRIER;
            }
            if ((missed > missed_limit || hdr.timer.is_down == 1) && rx_state != link_state_t.DOWN) {
                if (rx_state == link_state_t.UNKNOWN) {
                    enter(link_state_t.DOWN, down_reason);
                } else {
                    fail(link_state_t.DOWN, down_reason);
                }
            }
            if (rx_state == link_state_t.DOWN) {
                device = stranger[47:16];
                device_port = stranger[15:0];
            }
            // what is lost towards this switch is told with every window of the neighbor's heartbeats
            repeat = event_age >= window && rx_state != link_state_t.DEGRADED;
            send_heartbeat();
        } else if (hdr.heartbeat.device != device || hdr.heartbeat.port != device_port) {
            device = hdr.heartbeat.device;
            device_port = hdr.heartbeat.port;
            if (rx_state != link_state_t.DOWN || stranger != device ++ device_port) {
                enter(link_state_t.DOWN, link_reason_t.MISCABLED);
            }
            stranger = device ++ device_port;
        } else {
            hear();
            if (rx_state == link_state_t.UNKNOWN || rx_state == link_state_t.DOWN) {
                enter(link_state_t.PROBATION, link_reason_t.HEARD);
                start_window();
            } else if (sequence_step == 0 || sequence_step[31:31] == 1) {
                // the neighbor has started anew
                clean = 0;
                start_window();
                start_estimate();
            } else {
                grow_older();
                measure(window_tx, window_rx);
                if (rx_state == link_state_t.PROBATION) {
                    lengthen_probation();
                    clean = lost == 0 ? clean + 1 : 0;
                    start_window();
                    if (clean >= probation_length) {
                        enter(link_state_t.UP, link_reason_t.CLEAN);
                    }
                } else if (rx_state == link_state_t.UP) {
                    clean = lost == 0 ? clean |+| 1 : 0;
                    flaps = clean >= forgive ? 0 : flaps;
                    if (window_age == 1) {
                        // a window begins after the first loss, which alone says nothing about the rate
                        start_window();
                        window_age = lost == 0 ? 16w0 : 1;
                    } else if (lost >= min_lost && lost_ppm >= tolerated_ppm) {
                        fail(link_state_t.DEGRADED, link_reason_t.LOSS);
                        start_estimate();
                    } else if (window_over) {
                        start_window();
                    }
                } else if (window_over || (quarter_over && estimate_tx == window_tx)) {
                    // the first window's few losses are told as they add up
                    measure(estimate_tx, estimate_rx);
                    if (window_over && (lost == 0 || lost_ppm << 1 < tolerated_ppm)) {
                        enter(link_state_t.PROBATION, link_reason_t.CLEAN);
                    } else {
                        report = true;
                        reason = link_reason_t.LOSS;
                    }
                    if (window_over) {
                        start_estimate();
                        start_window();
                    }
                }
            }
        }

        // the worse of both directions
        if (rx_state == link_state_t.UNKNOWN) {
            state = link_state_t.UNKNOWN;
        } else if (rx_state == link_state_t.DOWN || neighbor_rx_state == link_state_t.DOWN) {
            state = link_state_t.DOWN;
        } else if (rx_state == link_state_t.PROBATION || neighbor_rx_state == link_state_t.PROBATION
                || neighbor_rx_state == link_state_t.UNKNOWN) {
            state = link_state_t.PROBATION;
        } else if (rx_state == link_state_t.DEGRADED || neighbor_rx_state == link_state_t.DEGRADED) {
            state = link_state_t.DEGRADED;
        } else {
            state = link_state_t.UP;
        }
        if (state != old_state && !report) {
            reason = link_reason_t.NEIGHBOR;
            report = true;
        }
        if (!report) {
            reason = last_reason;
            report = repeat;
        }
        event_age = report ? 16w0 : event_age;
        store();
        healthy = state == link_state_t.UP || (state == link_state_t.DEGRADED && avoid_degraded == 0);
        usable = healthy || state == link_state_t.DEGRADED || state == link_state_t.PROBATION;
        if (report) {
            send_event();
        }
    }
}
