// A stream buffer on a file descriptor that keeps the cause of a failed write.
#ifndef MUSTER_CLI_OUTPUT_DESCRIPTOR_BUFFER_H_
#define MUSTER_CLI_OUTPUT_DESCRIPTOR_BUFFER_H_

#include <array>
#include <streambuf>

namespace muster::cli {

// Writes when it is full and when the stream is flushed; the destructor writes nothing. After a
// failed write it drops its content and refuses more. Not thread-safe.
class DescriptorBuffer : public std::streambuf {
 public:
  // Does not own `descriptor`.
  explicit DescriptorBuffer(int descriptor);

  // Returns the errno of the failed write, or 0. The errno itself may have changed meanwhile: a
  // stream that is tied to this one flushes it at any time.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type byte) override;
  int sync() override;

 private:
  const int descriptor_;
  int error_ = 0;
  std::array<char, 16 * 1024> bytes_ = {};
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_DESCRIPTOR_BUFFER_H_
