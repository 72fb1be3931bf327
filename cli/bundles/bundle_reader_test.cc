#include "cli/bundles/bundle_reader.h"

#include <archive.h>
#include <archive_entry.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "cli/bundles/bundle_writer.h"
#include "cli/temporary_folder.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kLayout[] = "{\"imageLayoutVersion\":\"1.0.0\"}";

absl::Status GoOn(int64_t) { return absl::OkStatus(); }

class BundleReaderTest : public ::testing::Test {
 protected:
  BundleReaderTest() {
    Add(kLayoutPath, kLayout);
    Add("documents/types/greet@1.0.0.json", "{}");
    const std::string blob(300'000, 'b');
    Add(absl::StrCat(kBundleBlobs, ToHex(Sha256::Of(blob))), blob);
  }

  void Add(const std::string& path, const std::string& content) {
    const fs::path file = fs::path(source_.path()) / path;
    fs::create_directories(file.parent_path());
    EXPECT_TRUE(WriteFileAtomically(file.string(), content).ok());
    members_.push_back({path, static_cast<int64_t>(content.size()), ToHex(Sha256::Of(content))});
  }

  void Write() {
    const absl::Status written = WriteBundle(source_.path(), members_, bundle_, GoOn);
    ASSERT_TRUE(written.ok()) << written;
  }

  absl::StatusOr<std::vector<BundleMember>> Unpack(const std::string& path) {
    fs::remove_all(target_.path() + "/out");
    fs::create_directory(target_.path() + "/out");
    return UnpackBundle(path, target_.path() + "/out", &total_, GoOn);
  }

  std::string Read(const std::string& path) { return *ReadFileBounded(path, size_t{10} << 20); }

  // Expects that a bundle of these bytes is refused, and returns why.
  std::string Fault(const std::string& bytes) {
    const std::string path = target_.path() + "/damaged.tar";
    EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
    const absl::Status status = Unpack(path).status();
    EXPECT_EQ(ReasonOf(status), "BUNDLE_UNUSABLE") << status;
    return std::string(status.message());
  }

  const TemporaryFolder source_{::testing::TempDir()};
  const TemporaryFolder target_{::testing::TempDir()};
  const std::string bundle_ = target_.path() + "/site.tar";
  std::vector<BundleMember> members_;
  int64_t total_ = 0;
};

// A tar whose members are written one by one.
class Tar {
 public:
  explicit Tar(std::string path) : path_(std::move(path)), archive_(archive_write_new()) {
    archive_write_set_format_pax(archive_);
    archive_write_open_filename(archive_, path_.c_str());
  }

  void Add(const std::string& name, const std::string& content, unsigned type = AE_IFREG,
           const char* link = nullptr) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 0644);
    if (type == AE_IFREG) archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    if (link != nullptr && type == AE_IFLNK) archive_entry_set_symlink(entry, link);
    if (link != nullptr && type == AE_IFREG) archive_entry_set_hardlink(entry, link);
    archive_write_header(archive_, entry);
    if (!content.empty()) archive_write_data(archive_, content.data(), content.size());
    archive_entry_free(entry);
  }

  std::string Finish() {
    archive_write_free(archive_);
    return *ReadFileBounded(path_, size_t{10} << 20);
  }

 private:
  const std::string path_;
  archive* const archive_;
};

TEST_F(BundleReaderTest, BundleIsUnpackedAsItWasWritten) {
  Write();
  const auto members = Unpack(bundle_);
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_EQ(members->size(), 3u);
  EXPECT_EQ(total_, 300'000 + 2 + static_cast<int64_t>(sizeof(kLayout)) - 1);
  for (const BundleMember& member : *members) {
    EXPECT_EQ(Read(target_.path() + "/out/" + member.path),
              Read(source_.path() + "/" + member.path));
  }
  const std::string again = target_.path() + "/again.tar";
  ASSERT_TRUE(WriteBundle(source_.path(), members_, again, GoOn).ok());
  EXPECT_EQ(Read(again), Read(bundle_)) << "equal members give equal bytes";
}

TEST_F(BundleReaderTest, ChangedFileIsNotWritten) {
  members_.back().size += 1;
  EXPECT_TRUE(absl::IsDataLoss(WriteBundle(source_.path(), members_, bundle_, GoOn)));
}

TEST_F(BundleReaderTest, InterruptEndsBoth) {
  const auto stop = [](int64_t) { return absl::CancelledError("interrupted"); };
  EXPECT_TRUE(absl::IsCancelled(WriteBundle(source_.path(), members_, bundle_, stop)));
  fs::remove(bundle_);
  Write();
  fs::create_directory(target_.path() + "/out");
  EXPECT_TRUE(
      absl::IsCancelled(UnpackBundle(bundle_, target_.path() + "/out", &total_, stop).status()));
}

TEST_F(BundleReaderTest, CutBundleIsRefusedAtEachLength) {
  Write();
  const std::string bytes = Read(bundle_);
  const size_t end = bytes.find_last_not_of('\0') + 1;
  for (size_t size = 0; size < end; size += 997) Fault(bytes.substr(0, size));
  Fault(bytes.substr(0, end - 1));
}

TEST_F(BundleReaderTest, ChangedByteOfAMemberIsRefused) {
  Write();
  std::string bytes = Read(bundle_);
  for (const std::string& part : {std::string("bbbbbbbb"), std::string(kLayout),
                                  std::string("muster-bundle"), std::string("\"size\": 2")}) {
    const size_t at = bytes.find(part) + part.size() - 1;
    ASSERT_LT(at, bytes.size());
    bytes[at] ^= 1;
    Fault(bytes);
    bytes[at] ^= 1;
  }
}

TEST_F(BundleReaderTest, OtherMembersThanThoseOfTheIndexAreRefused) {
  const std::string index =
      BundleIndexText({{kLayoutPath, sizeof(kLayout) - 1, ToHex(Sha256::Of(kLayout))}});
  const auto bundle = [&](const std::function<void(Tar&)>& add) {
    Tar tar(target_.path() + "/made.tar");
    tar.Add(kIndexPath, index);
    add(tar);
    return tar.Finish();
  };
  const std::string path = target_.path() + "/good.tar";
  ASSERT_TRUE(
      WriteFileAtomically(path, bundle([](Tar& tar) { tar.Add(kLayoutPath, kLayout); })).ok());
  EXPECT_TRUE(Unpack(path).ok());
  EXPECT_NE(Fault(bundle([](Tar& tar) {
              tar.Add(kLayoutPath, kLayout);
              tar.Add("../escape", "x");
            })).find("../escape"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(target_.path() + "/escape"));
  Fault(bundle([](Tar& tar) { tar.Add("other", kLayout); }));
  Fault(bundle([](Tar& tar) {
    tar.Add(kLayoutPath, kLayout);
    tar.Add(kLayoutPath, kLayout);
  }));
  Fault(bundle([](Tar& tar) { tar.Add(kLayoutPath, std::string(kLayout) + "x"); }));
  Fault(bundle([](Tar& tar) { tar.Add(kLayoutPath, "", AE_IFLNK, "/etc/passwd"); }));
  Fault(bundle([](Tar& tar) { tar.Add(kLayoutPath, "", AE_IFREG, "/etc/passwd"); }));
  Fault(bundle([](Tar& tar) { tar.Add(kLayoutPath, "", AE_IFIFO); }));
  Fault(bundle([](Tar& tar) { tar.Add(kLayoutPath, "", AE_IFDIR); }));
  Fault(bundle([](Tar&) {}));
}

TEST_F(BundleReaderTest, MembersThatAreLargerThanTheFileAreRefused) {
  Tar tar(target_.path() + "/made.tar");
  tar.Add(kIndexPath, BundleIndexText({{kLayoutPath, int64_t{1} << 34, std::string(64, 'a')}}));
  EXPECT_NE(Fault(tar.Finish()).find("shorter"), std::string::npos);
}

// A sparse file would be larger on the disk than in the bundle.
TEST_F(BundleReaderTest, SparseFileIsRefused) {
  const std::string content = std::string(4'095, '\0') + "x";
  const std::string path = target_.path() + "/made.tar";
  archive* const a = archive_write_new();
  archive_write_set_format_pax(a);
  archive_write_open_filename(a, path.c_str());
  const auto add = [&](const char* name, const std::string& text, bool sparse) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_size(entry, static_cast<la_int64_t>(text.size()));
    if (sparse) archive_entry_sparse_add_entry(entry, 4'095, 1);
    archive_write_header(a, entry);
    archive_write_data(a, text.data(), text.size());
    archive_entry_free(entry);
  };
  add(kIndexPath, BundleIndexText({{kLayoutPath, 4'096, ToHex(Sha256::Of(content))}}), false);
  add(kLayoutPath, content, true);
  archive_write_free(a);
  EXPECT_NE(Fault(Read(path)).find("not a regular file"), std::string::npos);
}

TEST_F(BundleReaderTest, CompressedBundleIsRefused) {
  const std::string path = target_.path() + "/made.tar.gz";
  archive* const a = archive_write_new();
  archive_write_set_format_pax(a);
  archive_write_add_filter_gzip(a);
  archive_write_open_filename(a, path.c_str());
  archive_entry* const entry = archive_entry_new();
  archive_entry_set_pathname(entry, kIndexPath);
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_entry_set_size(entry, 0);
  archive_write_header(a, entry);
  archive_entry_free(entry);
  archive_write_free(a);
  Fault(Read(path));
}

TEST_F(BundleReaderTest, OtherFilesAreRefused) {
  Fault("");
  Fault("no tar");
  EXPECT_EQ(ReasonOf(Unpack("/dev/null").status()), "BUNDLE_UNUSABLE");
  EXPECT_TRUE(absl::IsNotFound(Unpack(target_.path() + "/none").status()));
}

TEST_F(BundleReaderTest, MissingSpaceIsFoundBeforeAnythingIsStored) {
  // A sparse file of the whole size, so that only the space of the target is missing.
  const int64_t large = int64_t{1} << 39;
  Tar tar(target_.path() + "/made.tar");
  tar.Add(kIndexPath, BundleIndexText({{kLayoutPath, large, std::string(64, 'a')}}));
  ASSERT_FALSE(tar.Finish().empty());
  fs::resize_file(target_.path() + "/made.tar", static_cast<uintmax_t>(large) + 100'000);
  const absl::Status status = Unpack(target_.path() + "/made.tar").status();
  EXPECT_EQ(ReasonOf(status), "DISK_FULL") << status;
  EXPECT_TRUE(fs::is_empty(target_.path() + "/out"));
}

}  // namespace
}  // namespace muster::cli
