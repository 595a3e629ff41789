/* From ports as a mask to a port: how many there are, and which is the one with a given rank.
 * Both work on sums of ever wider groups of bits, made once for a mask: members in 2, 4, 8, 16 and 32 ports. */
control CountMembers(in port_mask_t mask, inout member_sums_t sums) {
    // one action each, or the compiler would nest each expression into the next
    @hidden action sum_by2() {
        sums.by2 = (mask & 0x5555555555555555) + ((mask >> 1) & 0x5555555555555555);
    }

    @hidden action sum_by4() {
        sums.by4 = (sums.by2 & 0x3333333333333333) + ((sums.by2 >> 2) & 0x3333333333333333);
    }

    @hidden action sum_by8() {
        sums.by8 = (sums.by4 & 0x0f0f0f0f0f0f0f0f) + ((sums.by4 >> 4) & 0x0f0f0f0f0f0f0f0f);
    }

    @hidden action sum_by16() {
        sums.by16 = (sums.by8 & 0x00ff00ff00ff00ff) + ((sums.by8 >> 8) & 0x00ff00ff00ff00ff);
    }

    @hidden action sum_by32() {
        sums.by32 = (sums.by16 & 0x0000ffff0000ffff) + ((sums.by16 >> 16) & 0x0000ffff0000ffff);
    }

    @hidden action sum_all() {
        sums.all = sums.by32[7:0] + sums.by32[39:32];
    }

    apply {
        sum_by2();
        sum_by4();
        sum_by8();
        sum_by16();
        sum_by32();
        sum_all();
    }
}

/* The port of the member that has ``rank`` members below it; rank is less than sums.all. */
control SelectMember(in port_mask_t mask, in member_sums_t sums, in port_count_t rank, out port_t port) {
    port_count_t left;  // members to skip from ``at`` on
    port_count_t at;
    port_count_t below; // members in the lower half of what is left

    @hidden action start() {
        left = rank;
        at = 0;
        below = sums.by32[7:0];
    }

    @hidden action among_32() {
        below = (port_count_t)((sums.by16 >> at) & 0xffff);
    }

    @hidden action among_16() {
        below = (port_count_t)((sums.by8 >> at) & 0xff);
    }

    @hidden action among_8() {
        below = (port_count_t)((sums.by4 >> at) & 0xf);
    }

    @hidden action among_4() {
        below = (port_count_t)((sums.by2 >> at) & 0x3);
    }

    @hidden action among_2() {
        below = (port_count_t)((mask >> at) & 0x1);
    }

    @hidden action skip(port_count_t ports) {
        left = left - below;
        at = at + ports;
    }

    apply {
        start();
        if (left >= below) { skip(32); }
        among_32();
        if (left >= below) { skip(16); }
        among_16();
        if (left >= below) { skip(8); }
        among_8();
        if (left >= below) { skip(4); }
        among_4();
        if (left >= below) { skip(2); }
        among_2();
        if (left >= below) { skip(1); }
        port = (port_t)at;
    }
}
