// A renewal has three steps, each durable: next-key.pem is written; cert.pem is replaced by the
// certificate for that key, which makes the new pair effective; next-key.pem is renamed to key.pem.
// A reader does the third step if cert.pem belongs to next-key.pem.
#include "services/common/identity/certificate_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>

#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/folder_lock.h"
#include "services/common/identity/pem_files.h"
#include "services/common/identity/signing_request.h"

namespace muster {
namespace {

constexpr char kCurrent[] = "current";
constexpr char kGeneration[] = "published.";

std::string In(std::string_view folder, std::string_view name) {
  return absl::StrCat(ToAbsl(folder), "/", ToAbsl(name));
}

// Returns the key of `leaf`: key.pem, or next-key.pem if a crash prevented its renaming.
absl::StatusOr<PrivateKey> ReadKeyOf(const Certificate& leaf, const std::string& folder) {
  auto key = ReadKeyFile(In(folder, "key.pem"));
  if (key.ok() && leaf.Matches(*key)) return key;
  auto next = ReadKeyFile(In(folder, "next-key.pem"));
  if (!next.ok() || !leaf.Matches(*next)) {
    if (!key.ok()) return key.status();
    return errors::CertificateFilesUnusable(In(folder, "key.pem"),
                                            "it does not belong to cert.pem");
  }
  FileOps& files = PosixFileOps();
  absl::Status s = files.Rename(In(folder, "next-key.pem"), In(folder, "key.pem"));
  if (s.ok()) s = files.SyncFolder(folder);
  if (!s.ok()) return s;
  return next;
}

absl::Status CheckTrio(const CertificateTrio& trio, const std::string& folder, Role role,
                       absl::Time now) {
  if (RoleOf(trio.identity) != role) {
    return errors::CertificateFilesUnusable(
        In(folder, "cert.pem"),
        absl::StrCat("it is the certificate of ", trio.chain.front().Uri().value_or("nobody"),
                     ", not of role ", ToAbsl(RoleName(role))));
  }
  // A node dials and never listens.
  const Usage usage = role == Role::kNode ? Usage::kClient : Usage::kClientAndServer;
  return Annotate(
      VerifyChain(trio.chain.front(), std::span(trio.chain).subspan(1), trio.roots, usage, now),
      In(folder, "cert.pem"));
}

absl::StatusOr<CertificateTrio> MakeTrio(PrivateKey key, std::vector<Certificate> chain,
                                         std::vector<Certificate> roots, const std::string& folder,
                                         Role role, absl::Time now) {
  const auto uri = chain.front().Uri();
  if (!uri.ok())
    return errors::CertificateFilesUnusable(In(folder, "cert.pem"), ToStd(uri.status().message()));
  auto identity = ParseOwnIdentity(*uri);
  if (!identity.ok())
    return errors::CertificateFilesUnusable(In(folder, "cert.pem"),
                                            ToStd(identity.status().message()));
  CertificateTrio trio{std::move(key), std::move(chain), std::move(roots), *std::move(identity)};
  RETURN_IF_ERROR(CheckTrio(trio, folder, role, now));
  return trio;
}

absl::StatusOr<CertificateTrio> LoadLocked(const std::string& folder, Role role, absl::Time now) {
  ASSIGN_OR_RETURN(auto chain, ReadChainFile(In(folder, "cert.pem")));
  ASSIGN_OR_RETURN(auto roots, ReadChainFile(In(folder, "ca.pem")));
  ASSIGN_OR_RETURN(auto key, ReadKeyOf(chain.front(), folder));
  return MakeTrio(std::move(key), std::move(chain), std::move(roots), folder, role, now);
}

bool SameFiles(const CertificateTrio& a, const CertificateTrio& b) {
  return a.key.public_key() == b.key.public_key() && a.chain == b.chain && a.roots == b.roots;
}

}  // namespace

absl::StatusOr<CertificateTrio> LoadCertificateTrio(const std::string& folder, Role role,
                                                    absl::Time now) {
  ASSIGN_OR_RETURN(const auto lock, FolderLock::Take(folder));
  return LoadLocked(folder, role, now);
}

CertificateFiles::CertificateFiles(std::string folder, std::string runtime_folder, Role role,
                                   CertificateTrio trio)
    : folder_(std::move(folder)),
      runtime_folder_(std::move(runtime_folder)),
      published_folder_(In(runtime_folder_, kCurrent)),
      role_(role),
      trio_(std::move(trio)) {}

absl::StatusOr<std::unique_ptr<CertificateFiles>> CertificateFiles::Open(std::string folder,
                                                                         std::string runtime_folder,
                                                                         Role role,
                                                                         absl::Time now) {
  ASSIGN_OR_RETURN(auto trio, LoadCertificateTrio(folder, role, now));
  RETURN_IF_ERROR(MakeFolders(PosixFileOps(), runtime_folder));
  std::unique_ptr<CertificateFiles> files(
      new CertificateFiles(std::move(folder), std::move(runtime_folder), role, trio));
  const MutexLock lock(files->mutex_);
  RETURN_IF_ERROR(files->Publish(trio));
  return files;
}

Identity CertificateFiles::identity() const { return trio().identity; }

Certificate CertificateFiles::certificate() const { return trio().chain.front(); }

std::vector<Certificate> CertificateFiles::roots() const {
  const MutexLock lock(mutex_);
  return trio_.roots;
}

CertificateTrio CertificateFiles::trio() const {
  const MutexLock lock(mutex_);
  return trio_;
}

bool CertificateFiles::NeedsRenewal(absl::Time now) const { return now >= RenewAt(certificate()); }

absl::Status CertificateFiles::Refresh(absl::Time now) {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(auto trio, LoadCertificateTrio(folder_, role_, now));
  if (SameFiles(trio, trio_)) return absl::OkStatus();
  return Publish(trio);
}

absl::StatusOr<std::string> CertificateFiles::BeginRenewal() {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto folder_lock, FolderLock::Take(folder_));
  ASSIGN_OR_RETURN(const auto key, PrivateKey::Generate());
  ASSIGN_OR_RETURN(const auto pem, key.ToPkcs8Pem());
  RETURN_IF_ERROR(WriteFileAtomically(In(folder_, "next-key.pem"), pem.view()));
  return CreateSigningRequest(key);
}

absl::Status CertificateFiles::CompleteRenewal(std::string_view chain_pem, absl::Time now) {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto folder_lock, FolderLock::Take(folder_));
  ASSIGN_OR_RETURN(auto chain, ParseChain(chain_pem));
  ASSIGN_OR_RETURN(auto key, ReadKeyFile(In(folder_, "next-key.pem")));
  if (!chain.front().Matches(key)) {
    return errors::CertificateFilesUnusable("the renewed certificate", "it is for another key");
  }
  ASSIGN_OR_RETURN(const auto trio,
                   MakeTrio(std::move(key), chain, trio_.roots, folder_, role_, now));
  if (trio.identity != trio_.identity) {
    return errors::CertificateFilesUnusable("the renewed certificate", "it is for another name");
  }
  RETURN_IF_ERROR(WriteFileAtomically(In(folder_, "cert.pem"), ChainToPem(chain), 0644));
  ASSIGN_OR_RETURN(const auto settled, LoadLocked(folder_, role_, now));
  return Publish(settled);
}

absl::Status CertificateFiles::Publish(const CertificateTrio& trio) {
  ASSIGN_OR_RETURN(const auto key, trio.key.ToPkcs8Pem());
  std::string folder = absl::StrCat(In(runtime_folder_, kGeneration), "XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) {  // 0700
    return ErrnoError(errno, "make a folder in", runtime_folder_);
  }
  const std::string name = std::filesystem::path(folder).filename();
  for (const auto& [file, content] :
       {std::pair<const char*, std::string>{"cert.pem", ChainToPem(trio.chain)},
        {"ca.pem", ChainToPem(trio.roots)}}) {
    RETURN_IF_ERROR(WriteFileAtomically(In(folder, file), content));
  }
  RETURN_IF_ERROR(WriteFileAtomically(In(folder, "key.pem"), key.view()));

  // The link is created under another name and renamed, so observers see either the old folder or
  // the new one.
  const std::string link = absl::StrCat(folder, ".link");
  if (symlink(name.c_str(), link.c_str()) != 0) return ErrnoError(errno, "make link", link);
  if (rename(link.c_str(), published_folder_.c_str()) != 0) {
    return ErrnoError(errno, "replace", published_folder_);
  }
  RemoveAllBut(name, published_name_);
  published_name_ = name;
  trio_ = trio;
  return absl::OkStatus();
}

// Keeps the previously published folder for readers that still use it. A folder that cannot be
// removed is harmless; the next publication tries again.
void CertificateFiles::RemoveAllBut(std::string_view current, std::string_view previous) {
  FileOps& files = PosixFileOps();
  const auto entries = files.List(runtime_folder_);
  if (!entries.ok()) return;
  for (const FolderEntry& entry : *entries) {
    if (!entry.name.starts_with(kGeneration) || entry.name == current || entry.name == previous) {
      continue;
    }
    const std::string path = In(runtime_folder_, entry.name);
    const absl::Status removed =
        entry.type == FileType::kFolder ? RemoveTree(files, path) : files.Remove(path);
    removed.IgnoreError();
  }
}

}  // namespace muster
