// SHA-256 of a stream.
#ifndef MUSTER_SERVICES_AGGREGATOR_ARCHIVE_SHA256_H_
#define MUSTER_SERVICES_AGGREGATOR_ARCHIVE_SHA256_H_

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace muster {

// Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::string_view data);

  // The digest as 32 bytes. Starts anew for the next stream.
  std::string Finish();

  // The digest as 64 lower-case hex digits. Starts anew for the next stream.
  std::string FinishHex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_ARCHIVE_SHA256_H_
