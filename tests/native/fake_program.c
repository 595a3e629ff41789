/* fake_program.c - a hand-written program for tests of tables, state, events and digests without a P4 compiler.
 *
 * No packet passes through it: the fake_* functions below do on behalf of one made-up packet what generated code does.
 */
#include "device.h"

#define EXACT(name_, width_, offset_) {name_, width_, offset_, ((width_) + 7) / 8, SW_EXACT}
#define LPM(name_, width_, offset_) {name_, width_, offset_, ((width_) + 7) / 8, SW_LPM}
#define TERNARY(name_, width_, offset_) {name_, width_, offset_, ((width_) + 7) / 8, SW_TERNARY}
#define RANGE(name_, width_, offset_) {name_, width_, offset_, ((width_) + 7) / 8, SW_RANGE}
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define FIELDS(f, bytes) .n_fields = COUNT(f), .fields = f, .key_bytes = bytes, .key_stride = ((bytes) + 7) / 8 * 8
#define PLAIN .profile = -1, .direct_meter = -1, .default_action = -1, .max_size = 1 << 20

static const sw_param set_params[] = {{"port", 9, 0, 2}, {"mac", 48, 8, 8}};
static const sw_param wide_params[] = {{"v128", 128, 0, 16}, {"v200", 200, 16, 32}};
static const sw_action_desc actions[] = {
    {"nop", 0, NULL, 0},
    {"set", 2, set_params, 16},
    {"wide", 2, wide_params, 48},
};

static const sw_key_field exact1[] = {EXACT("a", 32, 0)};
static const sw_key_field exact2[] = {EXACT("a", 48, 0), EXACT("b", 9, 6), EXACT("c", 16, 8)};
static const sw_key_field exact5[] = {EXACT("a", 128, 0), EXACT("b", 128, 16), EXACT("c", 8, 32)};
static const sw_key_field lpm32[] = {LPM("a", 32, 0)};
static const sw_key_field lpm20[] = {LPM("a", 20, 0)};
static const sw_key_field lpm_mixed[] = {EXACT("a", 12, 0), LPM("b", 128, 2), EXACT("c", 8, 18)};
static const sw_key_field ternary1[] = {TERNARY("a", 32, 0), EXACT("b", 9, 4)};
static const sw_key_field ternary2[] = {TERNARY("a", 32, 0), EXACT("b", 4, 4), LPM("c", 32, 5), TERNARY("d", 9, 9)};
static const sw_key_field range2[] = {RANGE("a", 16, 0), TERNARY("b", 8, 2), RANGE("c", 12, 3)};

static const uint8_t set_7_1[] = {0, 7, 0, 0, 0, 0, 0, 1};
static const sw_table_desc tables[] = {
    {"exact1", SW_EXACT, SW_SIMPLE, PLAIN, FIELDS(exact1, 4)},
    {"exact2", SW_EXACT, SW_SIMPLE, PLAIN, FIELDS(exact2, 10)},
    {"exact5", SW_EXACT, SW_SIMPLE, PLAIN, FIELDS(exact5, 33)},
    {"lpm32", SW_LPM, SW_SIMPLE, PLAIN, FIELDS(lpm32, 4)},
    {"lpm20", SW_LPM, SW_SIMPLE, PLAIN, FIELDS(lpm20, 3)},
    {"lpm_mixed", SW_LPM, SW_SIMPLE, PLAIN, FIELDS(lpm_mixed, 19)},
    {"ternary1", SW_TERNARY, SW_SIMPLE, PLAIN, FIELDS(ternary1, 6)},
    {"ternary2", SW_TERNARY, SW_SIMPLE, PLAIN, FIELDS(ternary2, 11)},
    {"range2", SW_RANGE, SW_SIMPLE, PLAIN, FIELDS(range2, 5)},
    {"indirect", SW_EXACT, SW_INDIRECT, .profile = 0, .direct_meter = -1, .default_action = 0, .max_size = 16,
     FIELDS(exact1, 4)},
    {"selector", SW_EXACT, SW_SELECTOR, .profile = 1, .direct_meter = -1, .default_action = 0, .max_size = 16,
     FIELDS(exact1, 4)},
    {"keyless", SW_EXACT, SW_SIMPLE, .profile = -1, .direct_meter = -1, .default_action = 1, .default_args = set_7_1},
    {"small", SW_EXACT, SW_SIMPLE, .profile = -1, .direct_meter = 3, .default_action = 0, .max_size = 2,
     .with_counters = true, .with_ageing = true, FIELDS(exact1, 4)},
};

/* BMv2 uses the low 32 bits of a hash only. */
static uint64_t select_by_packet_length(sw_pkt *pkt) { return 0xabc00000000u | pkt->packet_length; }

static const sw_profile_desc profiles[] = {
    {"plain", 4, false, NULL},
    {"selecting", 0, true, select_by_packet_length},
};
static const sw_counter_desc counters[] = {{"indexed", 4, false}, {"direct", 0, true}};
static const sw_meter_desc meters[] = {
    {"bytes", 4, false, true, 2},
    {"packets", 4, false, false, 2},
    {"one_rate", 4, false, false, 1},
    {"direct", 0, true, false, 2},
};
static const sw_register_desc registers[] = {
    {"r8", 4, 8}, {"r64", 4, 64}, {"r65", 4, 65}, {"r128", 4, 128}, {"r200", 4, 200}, {"r12", 4, 12},
};
static const sw_digest_desc digests[] = {{"d6", 1, 6}, {"d8", 2, 8}};
static const sw_value_set_desc value_sets[] = {{"v16", 16}, {"v72", 72}};

const sw_program sw_the_program = {
    .abi = SW_ABI,
    .name = "fake",
    .n_tables = COUNT(tables),
    .n_actions = COUNT(actions),
    .n_profiles = COUNT(profiles),
    .n_counters = COUNT(counters),
    .n_meters = COUNT(meters),
    .n_registers = COUNT(registers),
    .n_digests = COUNT(digests),
    .n_value_sets = COUNT(value_sets),
    .tables = tables,
    .actions = actions,
    .profiles = profiles,
    .counters = counters,
    .meters = meters,
    .registers = registers,
    .digests = digests,
    .value_sets = value_sets,
    .receive = sw_pkt_free,
    .ingress = sw_pkt_free,
    .egress = sw_pkt_free,
};

/* Move the clock, and leave it to the test to call what falls due. */
void fake_clock(sw_dev *dev, uint64_t now) { dev->now = now; }

typedef struct {
    uint64_t handle; /* 0: miss */
    uint32_t action;
    uint8_t args[48];
} fake_result;

/* Apply the table to a packet of that length; the selector's hash is given. key: key_bytes long. */
void fake_apply(sw_dev *dev, uint32_t table, const uint8_t *key, uint32_t hash, uint32_t length, fake_result *result)
{
    uint64_t words[8] = {0};
    sw_pkt pkt = {.dev = dev, .ingress_length = length, .packet_length = hash};
    memcpy(words, key, tables[table].key_bytes);
    sw_lock(dev);
    sw_hit hit = sw_table_apply(&pkt, table, words);
    *result = (fake_result){hit.entry ? hit.entry->handle : 0, hit.action, {0}};
    if (hit.action < COUNT(actions))
        memcpy(result->args, hit.args, actions[hit.action].args_size);
    sw_unlock(dev);
}

void fake_count(sw_dev *dev, uint32_t counter, uint64_t index, uint32_t length)
{
    sw_pkt pkt = {.dev = dev, .ingress_length = length};
    sw_count(&pkt, counter, index);
}

uint32_t fake_meter(sw_dev *dev, uint32_t meter, uint64_t index, uint32_t length)
{
    sw_pkt pkt = {.dev = dev, .ingress_length = length};
    return sw_meter_run(&pkt, meter, index);
}

/* The direct meter of table "small" for the entry that the key hits. */
uint32_t fake_meter_direct(sw_dev *dev, const uint8_t *key)
{
    uint64_t words[1] = {0};
    sw_pkt pkt = {.dev = dev, .ingress_length = 100};
    memcpy(words, key, 4);
    sw_hit hit = sw_table_apply(&pkt, COUNT(tables) - 1, words);
    return sw_meter_run_direct(&pkt, 3, hit.entry);
}

void *fake_register(sw_dev *dev, uint32_t reg, uint64_t index)
{
    sw_pkt pkt = {.dev = dev};
    return sw_register_cell(&pkt, reg, index);
}

void fake_digest(sw_dev *dev, uint32_t digest, const uint8_t *sample)
{
    sw_pkt pkt = {.dev = dev};
    sw_digest(&pkt, digest, sample);
}

uint32_t fake_clones(sw_dev *dev, uint32_t session, uint32_t *truncate, sw_replica *replicas, uint32_t room)
{
    const sw_replicas *found = sw_clone_get(dev, session);
    if (!found)
        return UINT32_MAX;
    *truncate = found->truncate;
    for (uint32_t i = 0; i < found->n && i < room; i++)
        replicas[i] = found->replicas[i];
    return found->n;
}

void fake_event(sw_dev *dev, uint32_t type, uint64_t b, const uint8_t *data, uint32_t len)
{
    sw_lock(dev);
    sw_event_push(dev, type, 0, b, 0, data, len);
    sw_unlock(dev);
}
