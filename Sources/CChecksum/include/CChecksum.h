#pragma once
#include <stddef.h>
#include <stdint.h>

/// CRC-32C (Castagnoli) of `count` bytes, continuing from `crc`; start with 0.
/// Uses the processor's instruction where there is one, slicing by eight elsewhere.
uint32_t mill_crc32c(uint32_t crc, const void *bytes, size_t count);

/// The same by tables alone, so that a test can compare the two.
uint32_t mill_crc32c_portable(uint32_t crc, const void *bytes, size_t count);
