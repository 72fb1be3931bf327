#include "services/client/chunk_compressor.h"

#include <algorithm>

#include "services/common/base/zstd_frame.h"

namespace muster::client {
namespace {

constexpr int kMostSkipped = 16;
constexpr size_t kSmallest = 256;  // a frame of fewer bytes does not save space

}  // namespace

bool ChunkCompressor::Compress(std::string_view raw, std::string* frame) {
  if (raw.size() < kSmallest) return false;
  if (skip_ > 0) {
    --skip_;
    return false;
  }
  CompressFrame(raw, frame);
  if (frame->size() > raw.size() - raw.size() / 10) {
    skip_ = next_skip_;
    next_skip_ = std::min(next_skip_ * 2, kMostSkipped);
    return false;
  }
  next_skip_ = 1;
  return true;
}

}  // namespace muster::client
