#include "services/agent/docker/build_context.h"

#include <archive.h>
#include <archive_entry.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/archive/utf8_locale.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

const ImageRecipe kRecipe = {.base = "registry.example/site@sha256:" + std::string(64, 'a'),
                             .folder = "/work",
                             .labels = {{"muster.source", "abc"}, {"muster.type", "site@1.0.0"}}};

BuildFiles MakeFiles() {
  BuildFiles build;
  auto& files = build.files;
  const std::vector<std::pair<std::string, std::string>> contents = {
      {"Dockerfile", "RUN x"}, {"empty", ""}, {"f\xc3\xbcr/run", std::string(200'000, 'x')}};
  for (const auto& [path, content] : contents) {
    v1::Command::File& file = *files.Add();
    file.set_path(path);
    file.set_content(content);
    file.set_executable(path.ends_with("run"));
  }
  return build;
}

std::string ReadAll(BuildContext& context, size_t piece) {
  std::string tar;
  std::vector<char> buffer(piece);
  for (;;) {
    const auto read = context.Read(buffer);
    EXPECT_TRUE(read.ok()) << read.status();
    if (!read.ok() || *read == 0) return tar;
    tar.append(buffer.data(), *read);
  }
}

struct Entry {
  std::string content;
  unsigned mode;
  time_t time;
};

std::map<std::string, Entry> Unpack(const std::string& tar) {
  const Utf8Locale utf8;
  std::map<std::string, Entry> entries;
  archive* a = archive_read_new();
  archive_read_support_format_tar(a);
  EXPECT_EQ(archive_read_open_memory(a, tar.data(), tar.size()), ARCHIVE_OK);
  archive_entry* entry = nullptr;
  while (archive_read_next_header(a, &entry) == ARCHIVE_OK) {
    std::string content(static_cast<size_t>(archive_entry_size(entry)), '\0');
    EXPECT_EQ(archive_read_data(a, content.data(), content.size()),
              static_cast<la_ssize_t>(content.size()));
    EXPECT_EQ(archive_entry_filetype(entry), static_cast<unsigned>(AE_IFREG));
    EXPECT_EQ(archive_entry_uid(entry), 0);
    entries[archive_entry_pathname(entry)] = {content, archive_entry_perm(entry),
                                              archive_entry_mtime(entry)};
  }
  archive_read_free(a);
  return entries;
}

TEST(BuildContextTest, DockerfileCopiesTheFilesAndExecutesNothing) {
  EXPECT_EQ(DockerfileOf(kRecipe), "FROM registry.example/site@sha256:" + std::string(64, 'a') +
                                       "\nLABEL \"muster.source\"=\"abc\" "
                                       "\"muster.type\"=\"site@1.0.0\"\n"
                                       "COPY [\"files/\", \"/work/\"]\n");
}

TEST(BuildContextTest, TarHasTheDockerfileAndTheFilesBelowAFolder) {
  const BuildFiles files = MakeFiles();
  BuildContext context(kRecipe, files);
  const auto entries = Unpack(ReadAll(context, 1'000));
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries) {
    names.push_back(name);
    EXPECT_EQ(entry.mode, name.ends_with("run") ? 0755u : 0644u) << name;
    EXPECT_EQ(entry.time, 315'532'800) << name;
  }
  EXPECT_THAT(names,
              ElementsAre("Dockerfile", "files/Dockerfile", "files/empty", "files/f\xc3\xbcr/run"));
  EXPECT_EQ(entries.at("Dockerfile").content, DockerfileOf(kRecipe));
  EXPECT_EQ(entries.at("files/Dockerfile").content, "RUN x");
  EXPECT_EQ(entries.at("files/f\xc3\xbcr/run").content, std::string(200'000, 'x'));
}

TEST(BuildContextTest, EqualFilesGiveEqualBytes) {
  const BuildFiles files = MakeFiles();
  BuildContext first(kRecipe, files);
  BuildContext second(kRecipe, files);
  EXPECT_EQ(ReadAll(first, 7), ReadAll(second, 100'000));
}

// Returns a file whose content is in the folder of the test.
v1::Command::File StoredFile(int64_t size) {
  v1::Command::File file;
  file.set_path("big");
  file.set_size(size);
  file.set_sha256(std::string(32, 'd'));
  return file;
}

TEST(BuildContextTest, StoredContentIsReadFromTheFolder) {
  const std::string content(300'000, 'z');
  std::ofstream(::testing::TempDir() + "/big") << content;
  BuildFiles files = MakeFiles();
  files.folder = ::testing::TempDir();
  *files.files.Add() = StoredFile(300'000);
  BuildContext context(kRecipe, files);
  EXPECT_EQ(Unpack(ReadAll(context, 70'000)).at("files/big").content, content);
}

TEST(BuildContextTest, StoredContentThatIsMissingOrShorterFails) {
  std::ofstream(::testing::TempDir() + "/big") << "short";
  std::vector<char> buffer(1'000);
  for (const std::string& folder : {::testing::TempDir(), std::string("/none")}) {
    BuildFiles files;
    files.folder = folder;
    *files.files.Add() = StoredFile(6);
    BuildContext context(kRecipe, files);
    absl::StatusOr<size_t> read;
    do {
      read = context.Read(buffer);
    } while (read.ok() && *read > 0);
    EXPECT_FALSE(read.ok()) << folder;
  }
}

}  // namespace
}  // namespace muster
