// Reading the one JSON object of a file that hands an identity over.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_JSON_FIELDS_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_JSON_FIELDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace muster {

// Takes field after field; each has to be there, and none may be left over. Not thread-safe.
class JsonFields {
 public:
  explicit JsonFields(std::string_view text);

  // A text that is not empty.
  void Text(const char* name, std::string* value);
  // The same, which files written before it was known lack.
  void OptionalText(const char* name, std::string* value);
  // A list of such texts.
  void List(const char* name, std::vector<std::string>* values);
  // The same, which files written before it was known lack.
  void OptionalList(const char* name, std::vector<std::string>* values);

  // The first thing that was wrong, also a field that nobody took; empty if nothing was.
  std::string Fault() const;

 private:
  // The end if it is not there, or something was wrong before.
  nlohmann::ordered_json::iterator Find(const char* name);

  nlohmann::ordered_json json_;
  std::string fault_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_JSON_FIELDS_H_
