// A real registry for tests.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_TESTING_TEST_REGISTRY_H_
#define MUSTER_SERVICES_AGENT_DOCKER_TESTING_TEST_REGISTRY_H_

#include <memory>
#include <string>

#include "services/common/base/subprocess.h"
#include "services/common/base/unique_fd.h"

namespace muster::testing {

// Debian's docker-registry on a free port of the loopback interface, which Docker permits without
// TLS. Requires the package docker-registry: where it is missing, the test fails.
class TestRegistry {
 public:
  // With `password` it demands the user "muster" with this content of kPassword.
  explicit TestRegistry(bool demands_password = false);
  ~TestRegistry();

  static constexpr char kPassword[] = "s3cret";

  // Returns "127.0.0.1:PORT".
  const std::string& address() const { return address_; }
  // Returns a file of credentials for it, as RegistryCredentials reads it.
  std::string Credentials() const;
  // Gives a tag of `path` ("templates/web") to another stored image.
  void MoveTag(const std::string& path, const std::string& tag, const std::string& digest) const;

 private:
  std::string folder_;
  std::string address_;
  std::unique_ptr<Subprocess> registry_;
};

// A listener that accepts connections and never answers.
class SilentRegistry {
 public:
  SilentRegistry();
  const std::string& address() const { return address_; }
  // Blocks until there is a connection.
  void AwaitConnection() const;

 private:
  UniqueFd listener_;
  std::string address_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGENT_DOCKER_TESTING_TEST_REGISTRY_H_
