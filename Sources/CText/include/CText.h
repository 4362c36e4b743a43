#pragma once
#include <stddef.h>
#include <stdint.h>

/// A part of a text: its first byte and the byte after its last.
typedef struct {
  size_t start;
  size_t end;
} mill_text_range;

/// Field `number`, 1 or more, of the `count` bytes at `text`, which every `separator` ends; 0 to 0 when there are fewer.
mill_text_range mill_text_field(const uint8_t *text, size_t count, uint8_t separator, size_t number);

/// The same without the processor's vectors, so that a test can compare the two.
mill_text_range mill_text_field_portable(const uint8_t *text, size_t count, uint8_t separator, size_t number);
