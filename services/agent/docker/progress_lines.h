// The progress of a pull, a build or a push: JSON objects, a line each, after a status of 200.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_PROGRESS_LINES_H_
#define MUSTER_SERVICES_AGENT_DOCKER_PROGRESS_LINES_H_

#include <functional>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace muster {

// Not thread-safe.
class ProgressLines {
 public:
  // `handle` receives each object that is no error.
  explicit ProgressLines(std::function<void(const nlohmann::json& object)> handle = {});

  // Adds the next bytes of the answer. Lines of more than 64 KiB are cut, and ignored.
  void Feed(std::string_view piece);

  // Returns the last error that the daemon reported, at most 1 KiB; empty: none.
  const std::string& failure() const { return failure_; }

 private:
  void HandleLine();

  const std::function<void(const nlohmann::json&)> handle_;
  std::string line_;
  std::string failure_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_PROGRESS_LINES_H_
