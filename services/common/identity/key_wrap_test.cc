#include "services/common/identity/key_wrap.h"

#include <sys/stat.h>

#include <filesystem>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"

namespace muster {
namespace {

constexpr char kRun[] = "aaaaaaaaaaaaaaaa";

class KeyWrapTest : public ::testing::Test {
 protected:
  KeyWrapTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  ~KeyWrapTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(std::string_view name = "store.key") { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};

TEST_F(KeyWrapTest, UnwrapReturnsTheWrappedKey) {
  const auto wrap = KeyWrap::OpenOrCreate(Path());
  ASSERT_TRUE(wrap.ok()) << wrap.status();
  const PrivateKey key = *PrivateKey::Generate();
  const auto wrapped = wrap->Wrap(key, kRun);
  ASSERT_TRUE(wrapped.ok()) << wrapped.status();
  EXPECT_EQ(wrapped->find("PRIVATE"), std::string::npos);
  EXPECT_NE(*wrapped, *wrap->Wrap(key, kRun));
  // The file is created once: another process decrypts with the same key.
  const auto unwrapped = KeyWrap::OpenOrCreate(Path())->Unwrap(*wrapped, kRun);
  ASSERT_TRUE(unwrapped.ok()) << unwrapped.status();
  EXPECT_EQ(unwrapped->public_key(), key.public_key());
}

TEST_F(KeyWrapTest, ChangedBitOrAnotherRunFails) {
  const KeyWrap wrap = *KeyWrap::OpenOrCreate(Path());
  const std::string wrapped = *wrap.Wrap(*PrivateKey::Generate(), kRun);
  for (size_t i = 0; i < wrapped.size(); ++i) {
    std::string changed = wrapped;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_EQ(wrap.Unwrap(changed, kRun).status().code(), absl::StatusCode::kDataLoss) << i;
  }
  for (size_t size = 0; size < wrapped.size(); size += 7) {
    EXPECT_EQ(ReasonOf(wrap.Unwrap(wrapped.substr(0, size), kRun).status()), "WRAPPED_KEY_DAMAGED");
  }
  EXPECT_EQ(ReasonOf(wrap.Unwrap(wrapped, "bbbbbbbbbbbbbbbb").status()), "WRAPPED_KEY_DAMAGED");
}

TEST_F(KeyWrapTest, SecretIsReadWithItsReferenceAlone) {
  const KeyWrap wrap = *KeyWrap::OpenOrCreate(Path());
  const std::string value(kMaxSecret, 'v');
  const auto wrapped = wrap.WrapSecret(value, "prod/db@3");
  ASSERT_TRUE(wrapped.ok()) << wrapped.status();
  EXPECT_EQ(wrap.UnwrapSecret(*wrapped, "prod/db@3")->view(), value);
  EXPECT_EQ(ReasonOf(wrap.UnwrapSecret(*wrapped, "prod/db@2").status()), "WRAPPED_KEY_DAMAGED");
  EXPECT_EQ(ReasonOf(wrap.UnwrapStatusKey(*wrap.WrapSecret("value", kRun), kRun).status()),
            "WRAPPED_KEY_DAMAGED");
}

TEST_F(KeyWrapTest, StatusListenerKeyIsAnotherKind) {
  const KeyWrap wrap = *KeyWrap::OpenOrCreate(Path());
  const auto wrapped = wrap.WrapStatusKey(Secret("a key in PEM"), kRun);
  ASSERT_TRUE(wrapped.ok()) << wrapped.status();
  EXPECT_EQ(wrapped->find("a key"), std::string::npos);
  EXPECT_EQ(wrap.UnwrapStatusKey(*wrapped, kRun)->view(), "a key in PEM");
  EXPECT_EQ(ReasonOf(wrap.UnwrapStatusKey(*wrapped, "bbbbbbbbbbbbbbbb").status()),
            "WRAPPED_KEY_DAMAGED");
  // A key of one kind cannot be decrypted as the other kind.
  EXPECT_EQ(ReasonOf(wrap.Unwrap(*wrapped, kRun).status()), "WRAPPED_KEY_DAMAGED");
  const std::string authority = *wrap.Wrap(*PrivateKey::Generate(), kRun);
  EXPECT_EQ(ReasonOf(wrap.UnwrapStatusKey(authority, kRun).status()), "WRAPPED_KEY_DAMAGED");
}

TEST_F(KeyWrapTest, AnotherStoreKeyFailsWithItsReason) {
  const std::string wrapped =
      *KeyWrap::OpenOrCreate(Path("a"))->Wrap(*PrivateKey::Generate(), kRun);
  EXPECT_EQ(ReasonOf(KeyWrap::OpenOrCreate(Path("b"))->Unwrap(wrapped, kRun).status()),
            "STORE_KEY_MISMATCH");
}

TEST_F(KeyWrapTest, FileIsPrivateAndNeverReplaced) {
  EXPECT_EQ(KeyWrap::Open(Path()).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(KeyWrap::OpenOrCreate(Path()).ok());
  struct stat info{};
  ASSERT_EQ(stat(Path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);

  ASSERT_EQ(chmod(Path().c_str(), 0640), 0);
  EXPECT_EQ(ReasonOf(KeyWrap::OpenOrCreate(Path()).status()), "SECRET_FILE_EXPOSED");

  for (const char* content : {"", "abc\n", "short"}) {
    ASSERT_TRUE(WriteFileAtomically(Path(), content).ok());
    EXPECT_EQ(ReasonOf(KeyWrap::OpenOrCreate(Path()).status()), "STORE_KEY_MALFORMED");
    EXPECT_EQ(*ReadSecretFile(Path()), content);
  }
}

}  // namespace
}  // namespace muster
