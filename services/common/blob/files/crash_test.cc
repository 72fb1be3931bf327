// Loss of power and of the process, full and failing disks, at every call of an upload, over many
// seeds. After each, durable bytes must remain, a published blob must be complete, all remaining
// bytes must be a prefix of the sent ones, and the upload can be completed.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/blob/files/files_blob_store.h"

namespace muster {
namespace {

using Call = SimulatedDisk::Call;

constexpr char kName[] = "runs/a/results/x";

// The acknowledgements that the sender received.
struct Acked {
  bool staged = false;
  int64_t written = 0;
  int64_t durable = 0;
  bool published = false;
};

const std::string& Data() {
  static const std::string data = Pattern(6000);
  return data;
}

// Delivers the whole upload from the store's offset on; stops at the first failure.
absl::Status Deliver(SimulatedDisk& disk, Acked& acked, size_t chunk = 700) {
  ASSIGN_OR_RETURN(auto store, OpenFilesBlobStore({.root = "/m/blobs", .sync_every = 1500}, disk));
  auto blob = store->Resume("up");
  if (absl::IsNotFound(blob.status())) {
    // Published directly before the crash.
    if (store->Size(kName).ok()) return store->SyncName(kName);
    blob = store->Stage("up", static_cast<int64_t>(Data().size()));
    acked = {.staged = true};
  }
  if (!blob.ok()) return blob.status();
  while ((*blob)->written() < static_cast<int64_t>(Data().size())) {
    const std::string next = Data().substr(static_cast<size_t>((*blob)->written()), chunk);
    absl::Status added = (*blob)->Append(next, ExtendCrc32c(0, next));
    acked.written = (*blob)->written();
    acked.durable = std::max(acked.durable, (*blob)->durable());
    if (!added.ok()) return added;
  }
  RETURN_IF_ERROR((*blob)->Publish(kName));
  acked.published = true;
  return absl::OkStatus();
}

// Checks every promise after a crash, then completes the upload.
void CheckAndFinish(SimulatedDisk& disk, Acked acked, bool power_lost) {
  {
    auto store = OpenFilesBlobStore({.root = "/m/blobs"}, disk);
    ASSERT_TRUE(store.ok()) << store.status();
    auto published = (*store)->Open(kName, 0);
    if (published.ok()) {
      ASSERT_TRUE(ReadAll(**published) == Data());
    } else {
      ASSERT_FALSE(acked.published) << published.status();
      auto blob = (*store)->Resume("up");
      if (absl::IsNotFound(blob.status())) {
        ASSERT_EQ(acked.durable, 0);
        ASSERT_TRUE(power_lost || acked.written == 0);
      } else {
        ASSERT_TRUE(blob.ok()) << blob.status();
        ASSERT_GE((*blob)->written(), power_lost ? acked.durable : acked.written);
        ASSERT_EQ(ReadAll(**(*blob)->Read(0)),
                  Data().substr(0, static_cast<size_t>((*blob)->written())));
        ASSERT_EQ((*blob)->durable(), (*blob)->written());
      }
    }
  }
  ASSERT_TRUE(Deliver(disk, acked).ok());
  auto store = OpenFilesBlobStore({.root = "/m/blobs"}, disk);
  ASSERT_EQ(ReadAll(**(*store)->Open(kName, 0)), Data());
  ASSERT_TRUE((*store)->DiscardStaged("up").ok());
  ASSERT_TRUE((*store)->ListStaged()->empty());
  ASSERT_EQ(ReadAll(**(*store)->Open(kName, 0)), Data());
}

void Prepare(SimulatedDisk& disk) {
  ASSERT_TRUE(disk.MakeFolder("/m").ok());
  ASSERT_TRUE(disk.SyncFolder("/").ok());
}

int64_t ChangesOfOneUpload() {
  SimulatedDisk disk;
  Prepare(disk);
  Acked acked;
  EXPECT_TRUE(Deliver(disk, acked).ok());
  return disk.changes();
}

TEST(FilesBlobCrashTest, PowerLossAtEveryChange) {
  const int64_t changes = ChangesOfOneUpload();
  ASSERT_GT(changes, 30);
  for (int64_t at = 1; at <= changes + 1; ++at) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(absl::StrCat("at ", at, " seed ", seed));
      SimulatedDisk disk;
      Prepare(disk);
      disk.PowerOffAt(static_cast<int>(at));
      Acked acked;
      Deliver(disk, acked).IgnoreError();
      disk.Crash(seed);
      ASSERT_NO_FATAL_FAILURE(CheckAndFinish(disk, acked, true));
    }
  }
}

TEST(FilesBlobCrashTest, RepeatedPowerLoss) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 chance(seed);
    SimulatedDisk disk;
    Prepare(disk);
    Acked acked;
    for (int crash = 0; crash < 6; ++crash) {
      disk.PowerOffAt(1 + static_cast<int>(chance() % 40));
      const size_t chunk = 1 + chance() % 1200;
      Deliver(disk, acked, chunk).IgnoreError();
      if (chance() % 4 == 0 && !disk.powered_off()) {
        disk.Restart();
      } else {
        disk.Crash(chance());
      }
    }
    ASSERT_NO_FATAL_FAILURE(CheckAndFinish(disk, acked, true));
  }
}

// Another sender's bytes are removed, and the owner continues.
absl::Status DeliverAfterTruncation(SimulatedDisk& disk, int64_t* truncated) {
  constexpr size_t kOwn = 2100;
  ASSIGN_OR_RETURN(auto store, OpenFilesBlobStore({.root = "/m/blobs", .sync_every = 1500}, disk));
  ASSIGN_OR_RETURN(auto blob, store->Stage("up", -1));
  const auto append = [&](const std::string& data) {
    return blob->Append(data, ExtendCrc32c(0, data));
  };
  for (size_t at = 0; at < kOwn; at += 700) RETURN_IF_ERROR(append(Data().substr(at, 700)));
  const uint32_t crc32c = blob->crc32c();
  for (int i = 0; i < 3; ++i) RETURN_IF_ERROR(append(std::string(700, 'x')));
  RETURN_IF_ERROR(blob->Truncate(kOwn, crc32c));
  *truncated = kOwn;
  for (size_t at = kOwn; at < Data().size(); at += 700) {
    RETURN_IF_ERROR(append(Data().substr(at, 700)));
  }
  return blob->Sync();
}

TEST(FilesBlobCrashTest, TruncatedBytesDoNotReturnAfterAPowerLoss) {
  bool done = false;
  for (int at = 1; !done; ++at) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(absl::StrCat("at ", at, " seed ", seed));
      SimulatedDisk disk;
      Prepare(disk);
      disk.PowerOffAt(at);
      int64_t truncated = 0;
      done = DeliverAfterTruncation(disk, &truncated).ok();
      disk.Crash(seed);
      auto store = *OpenFilesBlobStore({.root = "/m/blobs"}, disk);
      auto blob = store->Resume("up");
      if (!blob.ok()) {
        ASSERT_TRUE(absl::IsNotFound(blob.status()) && truncated == 0) << blob.status();
        continue;
      }
      ASSERT_GE((*blob)->written(), done ? static_cast<int64_t>(Data().size()) : truncated);
      const std::string stored = ReadAll(**(*blob)->Read(0));
      const std::string foreign = Data().substr(0, 2100) + std::string(2100, 'x');
      ASSERT_TRUE(Data().starts_with(stored) || (truncated == 0 && foreign.starts_with(stored)));
      ASSERT_EQ((*blob)->crc32c(), ExtendCrc32c(0, stored));
    }
  }
}

// The n-th call of each kind fails, then the process or the power is lost.
TEST(FilesBlobCrashTest, FailureOfEachCall) {
  for (const Call call :
       {Call::kCreate, Call::kOpen, Call::kWrite, Call::kRead, Call::kReserve, Call::kSync,
        Call::kTruncate, Call::kRename, Call::kSyncFolder, Call::kRemove, Call::kMakeFolder,
        Call::kList, Call::kStat, Call::kSpace}) {
    for (const int error : {EIO, ENOSPC}) {
      for (int n = 1; n <= 25; ++n) {
        for (uint64_t seed = 0; seed < 4; ++seed) {
          SCOPED_TRACE(absl::StrCat("call ", static_cast<int>(call), " error ", error, " n ", n,
                                    " seed ", seed));
          SimulatedDisk disk;
          Prepare(disk);
          disk.FailAt(call, n, error);
          Acked acked;
          Deliver(disk, acked).IgnoreError();
          if (seed == 0) {
            disk.Restart();
          } else {
            disk.Crash(seed);
          }
          ASSERT_NO_FATAL_FAILURE(CheckAndFinish(disk, acked, seed != 0));
        }
      }
    }
  }
}

// The same owner continues after a failure without a crash; the power is lost at the end.
TEST(FilesBlobCrashTest, BytesOfAFailedSyncAreNotTrusted) {
  for (int n = 1; n <= 12; ++n) {
    for (uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(absl::StrCat("n ", n, " seed ", seed));
      SimulatedDisk disk;
      Prepare(disk);
      disk.FailAt(Call::kSync, n, EIO);
      Acked acked;
      absl::Status first = Deliver(disk, acked);
      if (!first.ok()) {
        ASSERT_FALSE(acked.published);
        ASSERT_TRUE(Deliver(disk, acked).ok());
      }
      disk.Crash(seed);
      acked.published = true;
      ASSERT_NO_FATAL_FAILURE(CheckAndFinish(disk, acked, true));
    }
  }
}

TEST(FilesBlobCrashTest, FullDiskKeepsAcceptedBytesAndUploadContinues) {
  SimulatedDisk disk;
  Prepare(disk);
  auto store = *OpenFilesBlobStore({.root = "/m/blobs"}, disk);
  for (int n = 1; n <= 2; ++n) {
    auto blob = *store->Stage(absl::StrCat("u", n), -1);
    ASSERT_TRUE(blob->Append("first", ExtendCrc32c(0, "first")).ok());
    disk.FailAt(Call::kWrite, n, ENOSPC);  // of the data or of the log
    for (int tries = 0; blob->written() < 11; ++tries) {
      const absl::Status added = blob->Append(" other", ExtendCrc32c(0, " other"));
      ASSERT_TRUE(added.ok() || absl::IsResourceExhausted(added)) << added;
      ASSERT_LT(tries, 3);
    }
    ASSERT_EQ(ReadAll(**blob->Read(0)), "first other");
    ASSERT_TRUE(blob->Publish(absl::StrCat("x", n)).ok());
    ASSERT_EQ(ReadAll(**store->Open(absl::StrCat("x", n), 0)), "first other");
  }
}

// The process is lost during the publication; the next one finds the blob, and then the power is
// lost.
TEST(FilesBlobCrashTest, BlobThatWasFoundAfterAKillSurvivesTheLossOfPower) {
  int found = 0;
  for (int n = 1; n <= 14; ++n) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(absl::StrCat("n ", n, " seed ", seed));
      SimulatedDisk disk;
      Prepare(disk);
      {
        auto store = *OpenFilesBlobStore({.root = "/m/blobs"}, disk);
        auto blob = *store->Stage("up", -1);
        ASSERT_TRUE(blob->Append("bytes", ExtendCrc32c(0, "bytes")).ok());
        disk.PowerOffAt(n);
        blob->Publish(kName).IgnoreError();
        disk.PowerOff();
      }
      disk.Restart();
      bool seen = false;
      {
        auto store = *OpenFilesBlobStore({.root = "/m/blobs"}, disk);
        seen = store->Size(kName).ok() && store->SyncName(kName).ok();
      }
      disk.Crash(seed);
      auto store = *OpenFilesBlobStore({.root = "/m/blobs"}, disk);
      if (seen) {
        ASSERT_TRUE(store->Open(kName, 0).ok());
        ++found;
      }
    }
  }
  EXPECT_GT(found, 0);
}

// A flipped bit after the last mark is found, and all bytes after it are discarded.
TEST(FilesBlobCrashTest, FlippedBitsAreFound) {
  SimulatedDisk disk;
  Prepare(disk);
  auto store = *OpenFilesBlobStore({.root = "/m/blobs"}, disk);
  auto blob = *store->Stage("up", -1);
  for (int i = 0; i < 10; ++i) {
    const std::string chunk = Pattern(100, i);
    ASSERT_TRUE(blob->Append(chunk, ExtendCrc32c(0, chunk)).ok());
  }
  blob.reset();
  disk.FlipBit("/m/blobs/staged/up", 450);
  EXPECT_EQ((*store->Resume("up"))->written(), 400);
}

}  // namespace
}  // namespace muster
