// Reads the JSON of Docker's answers, whatever its members are.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_ENGINE_JSON_H_
#define MUSTER_SERVICES_AGENT_DOCKER_ENGINE_JSON_H_

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "nlohmann/json.hpp"

namespace muster {

// Returns the member of an object if it has the type of `value`, otherwise `value`.
template <typename T>
T Member(const nlohmann::json& object, const char* name, T value) {
  if (!object.is_object()) return value;
  const auto found = object.find(name);
  if (found == object.end()) return value;
  if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() ? found->template get<bool>() : value;
  } else if constexpr (std::is_integral_v<T>) {
    return found->is_number_integer() ? found->template get<T>() : value;
  } else {
    return found->is_string() ? found->template get<T>() : value;
  }
}

// Returns the member if it is an object, otherwise an empty object.
inline nlohmann::json ObjectIn(const nlohmann::json& object, const char* name) {
  return object.is_object() && object.contains(name) && object[name].is_object()
             ? object[name]
             : nlohmann::json::object();
}

// Returns the texts of the list, which may be missing.
inline std::vector<std::string> TextsIn(const nlohmann::json& object, const char* name) {
  std::vector<std::string> texts;
  if (!object.is_object() || !object.contains(name) || !object[name].is_array()) return texts;
  for (const nlohmann::json& text : object[name]) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

// Returns the texts of the member "Labels", by name.
inline std::map<std::string, std::string> LabelsIn(const nlohmann::json& object) {
  std::map<std::string, std::string> labels;
  const nlohmann::json found = ObjectIn(object, "Labels");
  for (const auto& [name, value] : found.items()) {
    if (value.is_string()) labels[name] = value.get<std::string>();
  }
  return labels;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_ENGINE_JSON_H_
