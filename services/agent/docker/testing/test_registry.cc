#include "services/agent/docker/testing/test_registry.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/secret_file.h"
#include "testing/fixtures/await.h"

namespace muster::testing {
namespace {

constexpr int kConnectionLimitMilliseconds = 60'000;

// bcrypt of TestRegistry::kPassword.
constexpr char kUsers[] = "muster:$2b$04$PPG0AWn/iSiAIvUxJezBguG.xTatJJXXYHhpb89455BpvxPzQGEZ2\n";

// Returns what follows "listening on " in the log of the registry; empty until it does.
std::string AddressIn(const std::string& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string mark = "listening on ";
  const size_t begin = text.find(mark);
  if (begin == std::string::npos) return "";
  const size_t end = text.find_first_not_of("0123456789.:", begin + mark.size());
  return end == std::string::npos ? ""
                                  : text.substr(begin + mark.size(), end - begin - mark.size());
}

}  // namespace

TestRegistry::TestRegistry(bool demands_password) {
  std::string folder = "/tmp/registryXXXXXX";
  folder_ = mkdtemp(folder.data());
  std::string text = absl::StrCat(
      "version: 0.1\nlog: {level: info}\nstorage: {filesystem: "
      "{rootdirectory: ",
      folder_, "/images}}\nhttp: {addr: \"127.0.0.1:0\"}\n");
  if (demands_password) {
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/users", kUsers).ok());
    absl::StrAppend(&text, "auth: {htpasswd: {realm: test, path: ", folder_, "/users}}\n");
  }
  EXPECT_TRUE(WriteFileAtomically(folder_ + "/config.yml", text).ok());
  SubprocessOptions options;
  options.argv = {"/usr/bin/setpriv",         "--pdeathsig", "KILL",
                  "/usr/bin/docker-registry", "serve",       folder_ + "/config.yml"};
  options.out = ChildOutput::File(folder_ + "/log");
  options.err = ChildOutput::SameAsStdout();
  auto child = Subprocess::Start(std::move(options));
  if (!child.ok()) {
    ADD_FAILURE() << child.status();
    return;
  }
  registry_ = *std::move(child);
  EXPECT_TRUE(Await([&] {
    address_ = AddressIn(folder_ + "/log");
    return !address_.empty();
  }));
}

TestRegistry::~TestRegistry() {
  registry_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TestRegistry::Credentials() const {
  return absl::StrCat(R"({"auths": {")", address_, R"(": {"auth": ")",
                      absl::Base64Escape(absl::StrCat("muster:", kPassword)), R"("}}})");
}

void TestRegistry::MoveTag(const std::string& path, const std::string& tag,
                           const std::string& digest) const {
  const std::string link = absl::StrCat(folder_, "/images/docker/registry/v2/repositories/", path,
                                        "/_manifests/tags/", tag, "/current/link");
  ASSERT_TRUE(std::filesystem::exists(link)) << link;
  ASSERT_TRUE(WriteFileAtomically(link, digest).ok());
}

SilentRegistry::SilentRegistry() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener_.get(), 16), 0);
  getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
}

void SilentRegistry::AwaitConnection() const {
  pollfd wait = {listener_.get(), POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, kConnectionLimitMilliseconds), 1);
}

}  // namespace muster::testing
