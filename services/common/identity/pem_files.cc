#include "services/common/identity/pem_files.h"

#include <unistd.h>

#include <utility>

#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/secret.h"

namespace muster {
namespace {

constexpr size_t kMaxPem = 256 * 1024;

}  // namespace

bool FileExists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

absl::StatusOr<PrivateKey> ReadKeyFile(const std::string& path) {
  const auto parse = [&](std::string_view text) -> absl::StatusOr<PrivateKey> {
    auto key = PrivateKey::FromPem(text);
    if (!key.ok()) return errors::KeyFileDamaged(path, std::string(key.status().message()));
    return key;
  };
  ASSIGN_OR_RETURN(auto content, ReadSecretFile(path, [&](std::string_view text) {
                     return parse(text).status();
                   }));
  const Secret text(std::move(content));
  return parse(text.view());
}

absl::StatusOr<PrivateKey> EnsureKeyFile(const std::string& path) {
  if (FileExists(path)) return ReadKeyFile(path);
  auto key = PrivateKey::Generate();
  if (!key.ok()) return key;
  ASSIGN_OR_RETURN(const auto pem, key->ToPkcs8Pem());
  RETURN_IF_ERROR(WriteFileAtomically(path, pem.view()));
  return key;
}

absl::StatusOr<std::vector<Certificate>> ReadChainFile(const std::string& path) {
  ASSIGN_OR_RETURN(auto content, ReadFileBounded(path, kMaxPem));
  auto chain = ParseChain(content);
  if (!chain.ok()) {
    return errors::CertificateFileDamaged(path, std::string(chain.status().message()));
  }
  return chain;
}

}  // namespace muster
