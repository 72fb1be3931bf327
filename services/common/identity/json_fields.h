// Reads the JSON object of a file that transfers an identity.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_JSON_FIELDS_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_JSON_FIELDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace muster {

// Reads one field after another. Each field must be present, and no other field may exist. Not
// thread-safe.
class JsonFields {
 public:
  explicit JsonFields(std::string_view text);

  // Reads a text that is not empty.
  void Text(const char* name, std::string* value);
  // Reads a text that files of earlier versions lack.
  void OptionalText(const char* name, std::string* value);
  // Reads a list of such texts.
  void List(const char* name, std::vector<std::string>* values);
  // Reads a list that files of earlier versions lack.
  void OptionalList(const char* name, std::vector<std::string>* values);

  // Returns the first fault, including an unknown field; empty if there was none.
  std::string Fault() const;

 private:
  // Returns the end if the field is missing or an earlier field had a fault.
  nlohmann::ordered_json::iterator Find(const char* name);

  nlohmann::ordered_json json_;
  std::string fault_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_JSON_FIELDS_H_
