#include "services/jobs/workspace_cipher.h"

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "services/common/base/string_source.h"
#include "services/common/upload/upload_bytes.h"

namespace muster {
namespace {

Secret Key(char c) { return Secret(std::string(kWorkspaceKeySize, c)); }

WorkspaceCipher Cipher(int64_t size) { return {Key('k'), "w", "u1", size}; }

// Returns the stored bytes of an archive.
std::string Sealed(const WorkspaceCipher& cipher, const std::string& archive) {
  std::string sealed;
  for (size_t i = 0; i * kWorkspacePart < archive.size(); ++i) {
    sealed +=
        *cipher.Seal(static_cast<int64_t>(i), archive.substr(i * kWorkspacePart, kWorkspacePart));
  }
  return sealed;
}

absl::StatusOr<std::string> Read(const WorkspaceCipher& cipher, const std::string& sealed,
                                 int64_t index, int64_t end) {
  StringSource source(sealed);
  SealedArchive archive(cipher, source, index, end);
  return ReadUpTo(archive, size_t{10} << 20);
}

TEST(WorkspaceCipherTest, ArchiveIsReadFromEachPartOn) {
  const std::string archive = std::string(kWorkspacePart, 'a') + std::string(100, 'b');
  const auto size = static_cast<int64_t>(archive.size());
  const WorkspaceCipher cipher = Cipher(size);
  const std::string sealed = Sealed(cipher, archive);
  EXPECT_EQ(static_cast<int64_t>(sealed.size()), SealedSize(size));
  EXPECT_EQ(*Read(cipher, sealed, 0, size), archive);
  const auto first = static_cast<size_t>(SealedSize(kWorkspacePart));
  EXPECT_EQ(*Read(cipher, sealed.substr(first), 1, size), std::string(100, 'b'));
  EXPECT_EQ(sealed.find("bbbb"), std::string::npos);
  EXPECT_NE(Sealed(cipher, archive), sealed);  // with other nonces
}

TEST(WorkspaceCipherTest, ChangedMovedOrMissingPartsAreNotRead) {
  const std::string archive(3 * kWorkspacePart, 'a');
  const auto size = static_cast<int64_t>(archive.size());
  const WorkspaceCipher cipher = Cipher(size);
  const std::string sealed = Sealed(cipher, archive);
  const auto part = static_cast<size_t>(SealedSize(kWorkspacePart));
  std::string changed = sealed;
  changed[part + 20] ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(Read(cipher, changed, 0, size).status()));
  const std::string swapped =
      sealed.substr(part, part) + sealed.substr(0, part) + sealed.substr(2 * part);
  EXPECT_TRUE(absl::IsDataLoss(Read(cipher, swapped, 0, size).status()));
  EXPECT_TRUE(absl::IsDataLoss(Read(cipher, sealed.substr(0, 2 * part), 0, size).status()));
  const auto read_with = [&](const WorkspaceCipher& other) {
    return absl::IsDataLoss(Read(other, sealed, 0, size).status());
  };
  EXPECT_TRUE(read_with(WorkspaceCipher(Key('l'), "w", "u1", size)));
  EXPECT_TRUE(read_with(WorkspaceCipher(Key('k'), "v", "u1", size)));
  EXPECT_TRUE(read_with(WorkspaceCipher(Key('k'), "w", "u2", size)));
  EXPECT_TRUE(read_with(WorkspaceCipher(Key('k'), "w", "u1", size - 1)));
}

}  // namespace
}  // namespace muster
