#include "CChecksum.h"

#include <pthread.h>
#include <string.h>

// Slicing by eight: table[k][b] is the checksum of byte b followed by k zero bytes, so eight bytes cost eight
// independent look-ups. Polynomial 0x1EDC6F41, bit-reversed.
static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void) {
  for (uint32_t b = 0; b < 256; b++) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
    tables[0][b] = crc;
  }
  for (int k = 1; k < 8; k++)
    for (uint32_t b = 0; b < 256; b++) tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xFF];
}

uint32_t mill_crc32c_portable(uint32_t crc, const void *bytes, size_t count) {
  pthread_once(&tables_once, make_tables);
  const uint8_t *p = bytes;
  crc = ~crc;
  while (count >= 8) {
    uint32_t low, high;
    memcpy(&low, p, 4);
    memcpy(&high, p + 4, 4);
    low ^= crc;
    crc = tables[7][low & 0xFF] ^ tables[6][(low >> 8) & 0xFF] ^ tables[5][(low >> 16) & 0xFF] ^ tables[4][low >> 24] ^
          tables[3][high & 0xFF] ^ tables[2][(high >> 8) & 0xFF] ^ tables[1][(high >> 16) & 0xFF] ^ tables[0][high >> 24];
    p += 8;
    count -= 8;
  }
  while (count--) crc = (crc >> 8) ^ tables[0][(crc ^ *p++) & 0xFF];
  return ~crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t count) {
  uint64_t state = (uint32_t)~crc;
  while (count >= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    state = _mm_crc32_u64(state, word);
    p += 8;
    count -= 8;
  }
  uint32_t tail = (uint32_t)state;
  while (count--) tail = _mm_crc32_u8(tail, *p++);
  return ~tail;
}

uint32_t mill_crc32c(uint32_t crc, const void *bytes, size_t count) {
  if (__builtin_cpu_supports("sse4.2")) return crc32c_hardware(crc, bytes, count);
  return mill_crc32c_portable(crc, bytes, count);
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>

uint32_t mill_crc32c(uint32_t crc, const void *bytes, size_t count) {
  const uint8_t *p = bytes;
  crc = ~crc;
  while (count >= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    crc = __crc32cd(crc, word);
    p += 8;
    count -= 8;
  }
  while (count--) crc = __crc32cb(crc, *p++);
  return ~crc;
}
#else
uint32_t mill_crc32c(uint32_t crc, const void *bytes, size_t count) { return mill_crc32c_portable(crc, bytes, count); }
#endif
