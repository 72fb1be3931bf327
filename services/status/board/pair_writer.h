// Pairs as bytes of a protobuf message, straight from what the board keeps.
//
// An answer may hold a hundred thousand pairs: a message of a dozen small objects for each, which
// is only copied into bytes, costs three times as much as the bytes.
#ifndef MUSTER_SERVICES_STATUS_BOARD_PAIR_WRITER_H_
#define MUSTER_SERVICES_STATUS_BOARD_PAIR_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "services/status/board/pair.h"

namespace muster {

// Appends pairs to the bytes of a message. Other fields may be appended before or after: their
// order has no meaning. Not thread-safe.
class PairWriter {
 public:
  // `field`: the number of the message's field `pairs`. `out` outlives it.
  PairWriter(int field, std::string* out);

  void Add(const Pair& pair, const PairView& view);

  int count() const { return count_; }
  // The bytes that were appended.
  size_t bytes() const { return out_->size() - begin_; }

 private:
  const uint32_t tag_;
  std::string* const out_;
  const size_t begin_;
  int count_ = 0;
  std::string pair_;  // the memory of the newest one
};

// Fills a message with one pair, for the few that are shown with other data. Returns its size.
size_t FillPair(const Pair& pair, const PairView& view, v1::PairStatus* out);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_PAIR_WRITER_H_
