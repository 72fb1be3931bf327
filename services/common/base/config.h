// One YAML file per service, read into a struct of the service's own.
//
//   struct RelayConfig {
//     HostPort listen = {"127.0.0.1", 7444};
//     absl::Duration drain = absl::Seconds(10);
//   };
//   Config config("muster-relay");
//   config.Address("listen", &c.listen, "Where agents connect.");
//   config.Duration("drain", &c.drain, "How long a stop waits.", absl::Seconds(1),
//   absl::Minutes(5)); absl::Status status = config.Load(path);
//
// The members' values at that moment are the defaults; a comment is one line. A dot in a name makes
// a group: "limits.threads" is `threads` below `limits`.
#ifndef MUSTER_SERVICES_COMMON_BASE_CONFIG_H_
#define MUSTER_SERVICES_COMMON_BASE_CONFIG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/text_values.h"

namespace muster {

// The fields of one configuration file. The targets must outlive it. Not thread-safe.
class Config {
 public:
  // Says what is allowed if a value is not ("a name of 1 to 253 characters"), or nothing.
  using Check = std::function<std::optional<std::string>(const std::string&)>;

  // `program` is named in messages and at the top of what Print writes.
  explicit Config(std::string program) : program_(std::move(program)) {}

  void String(std::string name, std::string* value, std::string comment, const Check& check = {});
  void OneOf(std::string name, std::string* value, std::string comment,
             std::vector<std::string> choices);
  void Bool(std::string name, bool* value, std::string comment);
  void Int(std::string name, int64_t* value, std::string comment, int64_t min, int64_t max);
  void Duration(std::string name, absl::Duration* value, std::string comment, absl::Duration min,
                absl::Duration max);
  void ByteSize(std::string name, uint64_t* value, std::string comment, uint64_t min, uint64_t max);
  void StringList(std::string name, std::vector<std::string>* value, std::string comment,
                  const Check& check_each = {});
  // Addresses, "host:port" each.
  void AddressList(std::string name, std::vector<HostPort>* value, std::string comment);
  // May be left empty if its default is.
  void Address(std::string name, HostPort* value, std::string comment);

  // Reads the file (at most 1 MiB) into the targets; fields that it leaves out keep their values.
  // INVALID_ARGUMENT (INVALID_CONFIG) lists every mistake, a line each: "file:line: field: what is
  // wrong; what is allowed". The targets are then in no state to use.
  absl::Status Load(const std::string& path);

  // As Load; `file` is the name in messages.
  absl::Status Parse(std::string_view text, std::string_view file);

  // The same kind of error for a rule between fields, which the service checks after Load.
  absl::Status FieldError(std::string_view name, std::string_view problem) const;

  // A file with every field, its comment, what is allowed, and its present value.
  std::string Print() const;

 private:
  struct Field {
    std::string name;
    std::string comment;
    std::string allowed;  // "a whole number from 1 to 64"
    bool list = false;
    // Takes the value, or says what is allowed. A list comes as its elements, all else as one.
    std::function<std::optional<std::string>(const std::vector<std::string>&)> read;
    std::function<std::string()> print;  // as YAML
    std::string default_value;           // as print gave it when the field was added
  };
  class Reader;

  void Add(Field field);
  void PrintGroup(const std::vector<const Field*>& fields, size_t prefix, int depth,
                  std::string* out) const;
  absl::Status Failure(std::string_view problems) const;

  const std::string program_;
  std::vector<Field> fields_;
  std::string file_;                                   // read last
  std::map<std::string, int, std::less<>> read_line_;  // field -> line in it
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_CONFIG_H_
