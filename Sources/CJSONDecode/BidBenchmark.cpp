// The yardstick of `make bench`: what a plain C++ program over simdjson's On-Demand API takes for the same fields into the same
// columns. It trusts its input more than the decoder does: no checks of skipped values, no rejects, no nulls.

#include <simdjson.h>

#include <vector>

#include "Bytes.hpp"
#include "CJSONDecode.h"
#include "Calendar.hpp"

namespace {

using namespace simdjson;

constexpr size_t rows_max = 4096;

struct BidColumns {
  std::vector<int64_t> auction = std::vector<int64_t>(rows_max), bidder = auction, price = auction, date_time = auction;
  std::vector<mill::View> channel = std::vector<mill::View>(rows_max), url = channel, extra = channel;
  std::vector<uint8_t> heap = std::vector<uint8_t>(4 << 20);
  size_t heap_used = 0;
  size_t rows = 0;

  mill::View keep(std::string_view text) {
    auto *bytes = reinterpret_cast<const uint8_t *>(text.data());
    if (text.size() <= 12) return mill::make_view(bytes, uint32_t(text.size()));
    uint8_t *copy = heap.data() + heap_used;
    std::memcpy(copy, bytes, text.size());
    heap_used += text.size();
    return mill::make_view(copy, uint32_t(text.size()));
  }

  uint64_t drain() {
    uint64_t sum = rows;
    for (size_t i = 0; i < rows; i += 64) sum += uint64_t(auction[i] + bidder[i] + price[i] + date_time[i]) + channel[i].low + url[i].low + extra[i].low;
    rows = 0;
    heap_used = 0;
    return sum;
  }
};

}  // namespace

extern "C" int64_t mill_json_bench_bids(const uint8_t *bytes, size_t length, uint64_t *checksum) {
  ondemand::parser parser;
  ondemand::document_stream documents;
  if (parser.iterate_many(bytes, length, size_t(1) << 20).get(documents)) return -1;
  BidColumns columns;
  mill::TimestampReader timestamps;
  uint64_t sum = 0;
  int64_t total = 0;
  for (auto item : documents) {
    ondemand::object bid;
    if (item.get_object().get(bid)) return -1;
    size_t row = columns.rows;
    std::string_view channel, url, date_time, extra;
    if (bid["auction"].get(columns.auction[row]) || bid["bidder"].get(columns.bidder[row]) || bid["price"].get(columns.price[row])) return -1;
    if (bid["channel"].get(channel) || bid["url"].get(url) || bid["date_time"].get(date_time) || bid["extra"].get(extra)) return -1;
    if (timestamps.read(reinterpret_cast<const uint8_t *>(date_time.data()), uint32_t(date_time.size()), columns.date_time[row])) return -1;
    columns.channel[row] = columns.keep(channel);
    columns.url[row] = columns.keep(url);
    columns.extra[row] = columns.keep(extra);
    ++total;
    if (++columns.rows == rows_max || columns.heap_used > columns.heap.size() - (64 << 10)) sum += columns.drain();
  }
  *checksum = sum + columns.drain();
  return total;
}
