#pragma once
// CSV records (RFC 4180) to columns: the C face of the decoder. One call cuts or decodes a batch; nothing here is called per row.
//
// Fields, inputs, progress and rejects are those of CJSONDecode.h; so is the slack of 64 readable bytes behind every buffer.

#include "CJSONDecode.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Finds the records of `bytes`, which begin with one: where each starts and its length without the newline; empty lines are passed over.
/// A newline between quotes is part of its value. Stops after `count_max` records or when `bytes_max` bytes are passed. A record that does
/// not end in the buffer is left out, unless `is_last`: then it is all that is left. Returns the records, and in `consumed` the bytes passed.
uint32_t mill_csv_cut(
    const uint8_t *bytes, size_t length, uint8_t delimiter, bool is_last, uint32_t count_max, size_t bytes_max, uint32_t *starts,
    int32_t *lengths, size_t *consumed);

typedef struct mill_csv_decoder mill_csv_decoder;

mill_csv_decoder *mill_csv_decoder_create(const mill_json_field *fields, uint32_t count, uint8_t delimiter);
void mill_csv_decoder_destroy(mill_csv_decoder *decoder);

/// Says which field each place of a record is for, -1 for none; a record has just as many places. Fields without a place are NULL.
void mill_csv_set_places(mill_csv_decoder *decoder, const int32_t *fields, uint32_t count);

/// As `mill_json_decode`.
mill_json_progress mill_csv_decode(
    mill_csv_decoder *decoder, const mill_json_input *input, uint32_t first, uint32_t rows_max, size_t bytes_max, void *const *columns,
    uint32_t *row_records);
const uint64_t *mill_csv_validity(const mill_csv_decoder *decoder, uint32_t field);
const mill_json_reject *mill_csv_rejects(const mill_csv_decoder *decoder, uint32_t *count);
/// Freed by `mill_json_free_arena`.
void *mill_csv_take_arena(mill_csv_decoder *decoder);

#ifdef __cplusplus
}
#endif
