// Compresses chunks where that pays.
#ifndef MUSTER_SERVICES_CLIENT_CHUNK_COMPRESSOR_H_
#define MUSTER_SERVICES_CLIENT_CHUNK_COMPRESSOR_H_

#include <string>
#include <string_view>

namespace muster::client {

// Each chunk a zstd frame of its own. After a chunk that did not shrink by a tenth it leaves
// out some chunks (1, then 2, 4, 8, 16), so that incompressible files cost little. Not thread-safe.
class ChunkCompressor {
 public:
  // True, and the frame in `*frame`, if it is worth sending instead of `raw`.
  bool Compress(std::string_view raw, std::string* frame);

 private:
  int skip_ = 0;       // chunks to leave out now
  int next_skip_ = 1;  // after the next failure
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CHUNK_COMPRESSOR_H_
