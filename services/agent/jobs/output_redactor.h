// Masks the values of secrets in the output of a container.
#ifndef MUSTER_SERVICES_AGENT_JOBS_OUTPUT_REDACTOR_H_
#define MUSTER_SERVICES_AGENT_JOBS_OUTPUT_REDACTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

// A shorter value is not masked: it would hide parts of other words.
inline constexpr size_t kMinRedacted = 6;

// Replaces each byte of a value by "*", except for line breaks, so the output keeps its length and
// its lines. Masks these forms of a value, without the line breaks at its end: the bytes, as in a
// JSON string, and as base64 with both alphabets. Parts of a value are not masked, nor other
// encodings. The result does not depend on how the output is divided into pieces. Linear in output
// and values. Not thread-safe; wipes the forms in its destructor.
class OutputRedactor {
 public:
  using Sink = absl::FunctionRef<void(v1::JobStream stream, std::string_view data)>;

  explicit OutputRedactor(const std::vector<std::string_view>& values);
  ~OutputRedactor();
  OutputRedactor(const OutputRedactor&) = delete;
  OutputRedactor& operator=(const OutputRedactor&) = delete;

  // Passes the bytes of the stream that cannot be part of a later match. The others wait.
  void Add(v1::JobStream stream, std::string_view data, Sink sink);

  // Passes the bytes that wait, at the end of the output.
  void Finish(Sink sink);

  // Returns a text with all values masked.
  std::string Redact(std::string_view text) const;

 private:
  // A form that is searched for, by the algorithm of Knuth, Morris and Pratt.
  struct Form {
    std::string text;
    std::vector<uint32_t> next;  // the length of the longest border of each beginning
  };
  struct Stream {
    std::string waiting;
    std::vector<uint32_t> matched;  // of each form: its beginning at the end of `waiting`
  };

  void AddForm(std::string text);
  // Extends `stream`, and returns how many of its bytes are final.
  size_t Extend(Stream* stream, std::string_view data) const;

  std::vector<Form> forms_;
  std::array<Stream, 2> streams_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_OUTPUT_REDACTOR_H_
