/* Which member of the group the packet takes. A member whose link is known down is skipped here, in the same packet
 * time, and so is a drained one; one that is degraded or in probation is taken only where nothing better is left.
 * Reads meta.group_id, meta.avoided, meta.traffic_class, meta.flow_hash, meta.links_*, and the depths that egress
 * samples; writes meta.port. */
control ChooseMember(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x13000050)
    direct_counter(CounterType.packets_and_bytes) group_counter;

    // the rank of the member that is next in turn; indexed by group, written here
    register<bit<32>, group_id_t>(GROUPS) turn;

    port_mask_t members = 0;
    port_mask_t watched = 0;
    port_mask_t drained = 0;
    port_mask_t live = 0;
    port_count_t rank = 0;
    port_count_t other_rank = 0;
    port_t other_port = 0;
    bit<32> random_value = 0;
    bit<32> rotated = 0;
    bit<32> next = 0;
    depth_t depth = 0;
    depth_t other_depth = 0;
    ticks_t sampled = 0;
    ticks_t max_age = 0;
    spray_mode_t mode = spray_mode_t.ECMP;
    bit<5> rotation = 0;
    CountMembers() count_all;
    CountMembers() count_live;
    SelectMember() select_of_all;
    SelectMember() select_of_live;
    SelectMember() select_other;

    @id(0x01000050) @brief("The group's ports, and those of them that link_health watches.")
    action set_members(port_mask_t ports, port_mask_t watched_ports) {
        group_counter.count();
        members = ports;
        watched = watched_ports;
    }

    @id(0x01000051)
    action no_group() {
        meta.drop_reason = drop_reason_t.NO_GROUP;
    }

    @id(0x02000050) @brief("Groups of ports.")
    table group {
        key = { meta.group_id: exact @name("group_id"); }
        actions = { set_members; @defaultonly no_group; }
        const default_action = no_group();
        counters = group_counter;
        size = GROUP_SIZE;
    }

    @id(0x01000056) @brief("Ports that take nothing new, whatever their state.")
    action drain_ports(port_mask_t ports) {
        drained = ports;
    }

    @id(0x02000052) @brief("No key: the default action is all there is.")
    table drain {
        actions = { drain_ports; }
        default_action = drain_ports(0);
    }

    @id(0x01000052) @brief("By five-tuple. Switches of different tiers rotate the hash differently (bits, 0..31).")
    action ecmp(bit<5> hash_rotation) {
        mode = spray_mode_t.ECMP;
        rotation = hash_rotation;
    }

    @id(0x01000053) @brief("Every packet on its own, at random.")
    action spray_random() {
        mode = spray_mode_t.RANDOM;
    }

    @id(0x01000054) @brief("Every packet on its own, in turn.")
    action spray_rr() {
        mode = spray_mode_t.ROUND_ROBIN;
    }

    @id(0x01000055) @brief("Of two members at random, the shorter queue; older samples count as empty queues (ticks).")
    action spray_adaptive(ticks_t sample_max_age) {
        mode = spray_mode_t.ADAPTIVE;
        max_age = sample_max_age;
    }

    @id(0x02000051) @brief("How a group chooses, by traffic class.")
    table spray_mode {
        key = {
            meta.group_id: exact @name("group_id");
            meta.traffic_class: exact @name("traffic_class");
        }
        actions = { ecmp; spray_random; spray_rr; spray_adaptive; }
        default_action = ecmp(0);
        size = SPRAY_MODE_SIZE;
    }

    @hidden action rank_by_hash(in port_count_t count) {
        hash(rank, HashAlgorithm.identity, (bit<8>)0, { rotated }, count);
    }

    @hidden action rank_at_random(out port_count_t result, in port_count_t count) {
        random(random_value, 0, (bit<32>)count - 1);
        result = (port_count_t)random_value;
    }

    @hidden action take_turn() {
        turn.read(next, meta.group_id);
        rank = next < (bit<32>)meta.sums.all ? (port_count_t)next : 0;
        turn.write(meta.group_id, (bit<32>)rank + 1);
    }

    @hidden action sample(in port_t port, out depth_t result) {
        queue_depth_time.read(sampled, (queue_index_t)(port[5:0] ++ meta.queue));
        queue_depth.read(result, (queue_index_t)(port[5:0] ++ meta.queue));
        result = standard_metadata.ingress_global_timestamp - sampled <= max_age ? result : 0;
    }

    @hidden action rotate() {
        rotated = (meta.flow_hash >> rotation) | (meta.flow_hash << (32 - (bit<6>)rotation));
    }

    /* The other half of the hash: flows that shared the dead member spread over all that live. */
    @hidden action rotate_half() {
        rotated = (rotated >> 16) | (rotated << 16);
    }

    apply {
        if (!group.apply().hit) {
            return;
        }
        spray_mode.apply();
        drain.apply();
        drained = drained | meta.avoided;
        live = members & ~drained & (meta.links_healthy | ~watched);
        if (live == 0) {
            live = members & ~drained & meta.links_usable;
        }
        if (live == 0) {
            meta.drop_reason = drop_reason_t.NO_MEMBER;
            return;
        }
        if (mode == spray_mode_t.ECMP) {
            rotate();
            count_all.apply(members, meta.sums);
            rank_by_hash(meta.sums.all);
            select_of_all.apply(members, meta.sums, rank, meta.port);
            if ((live >> (bit<8>)meta.port) & 1 == 1) {
                return;
            }
            rotate_half();
        }
        count_live.apply(live, meta.sums);
        if (mode == spray_mode_t.ECMP) {
            rank_by_hash(meta.sums.all);
        } else if (mode == spray_mode_t.ROUND_ROBIN) {
            take_turn();
        } else {
            rank_at_random(rank, meta.sums.all);
        }
        select_of_live.apply(live, meta.sums, rank, meta.port);
        if (mode == spray_mode_t.ADAPTIVE && meta.sums.all > 1) {
            rank_at_random(other_rank, meta.sums.all - 1);
            if (other_rank >= rank) {
                other_rank = other_rank + 1;
            }
            select_other.apply(live, meta.sums, other_rank, other_port);
            sample(meta.port, depth);
            sample(other_port, other_depth);
            if (other_depth < depth) {
                meta.port = other_port;
            }
        }
    }
}
