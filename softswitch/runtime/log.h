/* log.h - text from the packet path: log_msg, failed assertions, traces. */
#ifndef SW_LOG_H
#define SW_LOG_H

#include "sw.h"

/* A message to the control plane as an SW_EV_LOG event; cut at 1,023 bytes. */
void sw_log(sw_pkt *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* assert() or assume() was false: counted, logged, and the packet ends here (BMv2 aborts the switch). */
void sw_assertion_failed(sw_pkt *, const char *what);

/* Each writes into buf, which must be large enough, and returns it. */
char *sw_decimal(char *buf /* 41 bytes */, u128 value, int is_signed);
char *sw_hex(char *buf /* 2n + 1 bytes */, const void *bytes, uint32_t n);
char *sw_hex_limbs(char *buf /* 16n + 3 bytes */, const void *limbs, uint32_t n);

/* With SW_TRACE: lines since the last call, each with its newline; returns bytes written, call until 0. */
uint32_t sw_trace_take(sw_dev *, char *buf, uint32_t cap);

#endif
