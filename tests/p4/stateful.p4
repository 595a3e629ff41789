/* State that outlives a packet: counters, meters and registers, indexed and direct, from 1 to 256 bits wide.
 * The packet comes back to its port; `result` has the colours and what the registers held before. */
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

const bit<32> CELLS = 16;

enum bit<8> operation_t {
    READ = 0,
    WRITE = 1,
    ADD = 2
}

header request_t {
    operation_t operation;
    bit<8> index; // past the last cell nothing is read, written or counted
    bit<8> key;
    bit<64> value;
}

header result_t {
    bit<8> color;
    bit<8> byte_color;
    bit<8> direct_color;
    bit<1> flag;
    bit<7> small;
    bit<32> word;
    bit<48> time;
    bit<64> long;
    bit<128> wide;
    bit<256> huge;
    int<16> signed;
}

struct headers_t {
    result_t result;
    request_t request;
}

struct metadata_t {
    bit<2> direct_color;
}

parser StatefulParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    state start {
        meta.direct_color = 0;
        packet.extract(hdr.request);
        transition accept;
    }
}

control StatefulVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Registers(inout headers_t hdr) {
    register<bit<1>, bit<8>>(CELLS) flag_register;
    register<bit<7>, bit<8>>(CELLS) small_register;
    register<bit<32>, bit<8>>(CELLS) word_register;
    register<bit<48>, bit<8>>(CELLS) time_register;
    register<bit<64>, bit<8>>(CELLS) long_register;
    register<bit<128>, bit<8>>(CELLS) wide_register;
    register<bit<256>, bit<8>>(CELLS) huge_register;
    register<int<16>, bit<8>>(CELLS) signed_register;

    action read_all() {
        flag_register.read(hdr.result.flag, hdr.request.index);
        small_register.read(hdr.result.small, hdr.request.index);
        word_register.read(hdr.result.word, hdr.request.index);
        time_register.read(hdr.result.time, hdr.request.index);
        long_register.read(hdr.result.long, hdr.request.index);
        wide_register.read(hdr.result.wide, hdr.request.index);
        huge_register.read(hdr.result.huge, hdr.request.index);
        signed_register.read(hdr.result.signed, hdr.request.index);
    }

    action write_all() {
        flag_register.write(hdr.request.index, hdr.request.value[0:0]);
        small_register.write(hdr.request.index, hdr.request.value[6:0]);
        word_register.write(hdr.request.index, hdr.request.value[31:0]);
        time_register.write(hdr.request.index, hdr.request.value[47:0]);
        long_register.write(hdr.request.index, hdr.request.value);
        wide_register.write(hdr.request.index, hdr.request.value ++ ~hdr.request.value);
        huge_register.write(hdr.request.index, hdr.request.value ++ 128w0 ++ hdr.request.value);
        signed_register.write(hdr.request.index, (int<16>)hdr.request.value[15:0]);
    }

    action add_all() {
        flag_register.write(hdr.request.index, hdr.result.flag + 1);
        small_register.write(hdr.request.index, hdr.result.small + hdr.request.value[6:0]);
        word_register.write(hdr.request.index, hdr.result.word + hdr.request.value[31:0]);
        time_register.write(hdr.request.index, hdr.result.time + hdr.request.value[47:0]);
        long_register.write(hdr.request.index, hdr.result.long + hdr.request.value);
        wide_register.write(hdr.request.index, hdr.result.wide + (bit<128>)hdr.request.value);
        huge_register.write(hdr.request.index, hdr.result.huge + (bit<256>)hdr.request.value);
        signed_register.write(hdr.request.index, hdr.result.signed - 1);
    }

    apply {
        if (hdr.request.index < (bit<8>)CELLS) {
            read_all();
            if (hdr.request.operation == operation_t.WRITE) {
                write_all();
            } else if (hdr.request.operation == operation_t.ADD) {
                add_all();
            }
        }
    }
}

control StatefulIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter<bit<8>>(CELLS, CounterType.packets) packet_counter;
    counter<bit<8>>(CELLS, CounterType.bytes) byte_counter;
    counter<bit<8>>(CELLS, CounterType.packets_and_bytes) both_counter;
    meter<bit<8>>(CELLS, MeterType.packets) packet_meter;
    meter<bit<8>>(CELLS, MeterType.bytes) byte_meter;
    direct_counter(CounterType.packets_and_bytes) entry_counter;
    direct_counter(CounterType.packets) policy_counter;
    direct_meter<bit<2>>(MeterType.packets) policy_meter;
    Registers() registers;

    action count_entry(bit<8> mark) {
        entry_counter.count();
        hdr.request.key = mark;
    }

    action pass_entry() {
        entry_counter.count();
    }

    /* Counts by entry. */
    table counted {
        key = { hdr.request.key: exact; }
        actions = { count_entry; pass_entry; }
        default_action = pass_entry();
        counters = entry_counter;
        size = 64;
    }

    action police() {
        policy_counter.count();
        policy_meter.read(meta.direct_color);
    }

    action drop_policed() {
        policy_counter.count();
        policy_meter.read(meta.direct_color);
        mark_to_drop(standard_metadata);
    }

    /* Counts and meters by entry. */
    table policed {
        key = { hdr.request.value[7:0]: ternary @name("low_byte"); }
        actions = { police; drop_policed; NoAction; }
        const default_action = NoAction();
        counters = policy_counter;
        meters = policy_meter;
        size = 64;
    }

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        if (!hdr.request.isValid()) {
            return;
        }
        hdr.result.setValid();
        hdr.result.color = 0;
        hdr.result.byte_color = 0;
        hdr.result.direct_color = 0;
        hdr.result.flag = 0;
        hdr.result.small = 0;
        hdr.result.word = 0;
        hdr.result.time = 0;
        hdr.result.long = 0;
        hdr.result.wide = 0;
        hdr.result.huge = 0;
        hdr.result.signed = 0;

        registers.apply(hdr);
        if (hdr.request.index < (bit<8>)CELLS) {
            packet_counter.count(hdr.request.index);
            byte_counter.count(hdr.request.index);
            both_counter.count(hdr.request.index);
            packet_meter.execute_meter(hdr.request.index, hdr.result.color);
            byte_meter.execute_meter(hdr.request.index, hdr.result.byte_color);
        }
        counted.apply();
        policed.apply();
        hdr.result.direct_color = (bit<8>)meta.direct_color;
    }
}

control StatefulEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter<bit<9>>(512, CounterType.packets_and_bytes) port_counter;

    apply {
        port_counter.count(standard_metadata.egress_port);
    }
}

control StatefulComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control StatefulDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.result);
        packet.emit(hdr.request);
    }
}

V1Switch(StatefulParser(), StatefulVerifyChecksum(), StatefulIngress(), StatefulEgress(), StatefulComputeChecksum(),
         StatefulDeparser()) main;
