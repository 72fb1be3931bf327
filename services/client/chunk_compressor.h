// Compresses chunks if that saves space.
#ifndef MUSTER_SERVICES_CLIENT_CHUNK_COMPRESSOR_H_
#define MUSTER_SERVICES_CLIENT_CHUNK_COMPRESSOR_H_

#include <string>
#include <string_view>

namespace muster::client {

// Compresses each chunk as a separate zstd frame. After a chunk that did not shrink by a tenth it
// skips some chunks (1, then 2, 4, 8, 16), so that incompressible files cost little. Not
// thread-safe.
class ChunkCompressor {
 public:
  // Returns true and sets `*frame` if the frame is smaller than `raw` by enough.
  bool Compress(std::string_view raw, std::string* frame);

 private:
  int skip_ = 0;       // chunks to skip
  int next_skip_ = 1;  // after the next failure
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CHUNK_COMPRESSOR_H_
