#include "services/common/identity/pem_files.h"

#include <unistd.h>

#include <utility>

#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/secret.h"

namespace muster {
namespace {

constexpr size_t kMaxPem = 256 * 1024;

}  // namespace

bool FileExists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

absl::StatusOr<PrivateKey> ReadKeyFile(const std::string& path) {
  auto content = ReadSecretFile(path);
  if (!content.ok()) return content.status();
  const Secret text(*std::move(content));
  auto key = PrivateKey::FromPem(text.view());
  if (!key.ok()) return Annotate(key.status(), path);
  return key;
}

absl::StatusOr<PrivateKey> EnsureKeyFile(const std::string& path) {
  if (FileExists(path)) return ReadKeyFile(path);
  auto key = PrivateKey::Generate();
  if (!key.ok()) return key;
  const auto pem = key->ToPkcs8Pem();
  if (!pem.ok()) return pem.status();
  if (absl::Status s = WriteFileAtomically(path, pem->view()); !s.ok()) return s;
  return key;
}

absl::StatusOr<std::vector<Certificate>> ReadChainFile(const std::string& path) {
  auto content = ReadFileBounded(path, kMaxPem);
  if (!content.ok()) return content.status();
  auto chain = ParseChain(*content);
  if (!chain.ok()) return Annotate(chain.status(), path);
  return chain;
}

}  // namespace muster
