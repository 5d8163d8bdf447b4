/*
 * Controls of the fake driver, beside the functions of the driver itself. Counted are calls by the driver's
 * names ("cuMemcpyHtoDAsync_v2") and launches by the kernel's ("lk_scale"); also "bytes in", "bytes out", "bytes"
 * (taken of the devices now), "leaked" (blocks left when their context ended) and "misuses".
 *
 * Settings, also read from LATENTKIT_FAKE_CUDA at first use, separated by commas, each of them optional:
 *   devices=1 version=13000 capability=90 memory=8589934592 name=Fake
 *   fail=FUNCTION:ERROR:NTH   the NTH call (from 1, 1 if left out) returns ERROR; a launch (NTH counts every kernel)
 *                             fails like a real one: at the next wait, and everything after it
 *   fail=KERNEL:ERROR:NTH     the same for one kernel, "lk_scale"
 * Errors from 700 to 799 stay, as they do in a real context.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts afresh with these settings; "" for none. The caller has closed its devices. */
void fake_cuda_configure(const char *settings);
uint64_t fake_cuda_count(const char *what);
/* The misuses so far, the last first, a line each; ended by 0. */
void fake_cuda_misuses(char *text, size_t room);

#ifdef __cplusplus
}
#endif
