#include "cli/sources/git_address.h"

#include <re2/re2.h>

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/cli.h"
#include "services/common/templates/files.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxAddress = 1'024;

}  // namespace

bool IsGitAddress(std::string_view source) {
  return source.starts_with("git+") || source.find("://") != std::string_view::npos ||
         source.find("::") != std::string_view::npos;
}

absl::StatusOr<GitAddress> ParseGitAddress(std::string_view source) {
  const auto refuse = [&](std::string_view why, std::string_view next_step) {
    return errors::SourceUnusable(CutUtf8(CleanUtf8(source), kMaxAddress), why, next_step);
  };
  // A host and a ref begin with no "-": they would be options of git or of its helpers.
  static const RE2 kPattern(
      R"(git\+(https://([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::[0-9]{1,5})?)"
      R"(/[A-Za-z0-9._~%+/-]+)@([A-Za-z0-9_][A-Za-z0-9._+/-]*)(?:#(.+))?)");
  constexpr std::string_view kForm =
      "Write git+https://HOST/PATH@REF, or git+https://HOST/PATH@REF#FOLDER, where REF is a "
      "branch, "
      "a tag or a commit.";
  GitAddress address;
  const re2::StringPiece text(source.data(), source.size());
  if (!source.starts_with("git+https://")) return refuse("it is not an address by https", kForm);
  const std::string_view authority =
      source.substr(12, source.find('/', 12) == std::string_view::npos ? std::string_view::npos
                                                                       : source.find('/', 12) - 12);
  if (authority.find('@') != std::string_view::npos) {
    return errors::SourceUnusable(
        "the address of git", "it has a user or a password",
        "Clone the repository yourself, and name the folder: an address appears in documents.");
  }
  if (source.size() > kMaxAddress ||
      !RE2::FullMatch(text, kPattern, &address.url, &address.host, &address.ref, &address.folder)) {
    return refuse("it is not a plain address of git", kForm);
  }
  // Git's own rules for refs exclude these.
  if (absl::StrContains(address.ref, "..") || absl::StrContains(address.ref, "//") ||
      address.ref.ends_with('/') || address.ref.ends_with('.') || address.ref.ends_with(".lock") ||
      absl::StrContains(address.ref, ".lock/")) {
    return refuse("its ref is no name of a branch, a tag or a commit", kForm);
  }
  if (!address.folder.empty()) {
    if (const std::string why = WhyInvalidPath(address.folder); !why.empty()) {
      return refuse(absl::StrCat("its folder ", why), kForm);
    }
  }
  absl::AsciiStrToLower(&address.host);
  return address;
}

}  // namespace muster::cli
