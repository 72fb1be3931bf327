#include "services/common/store/sqlite/simulated_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"

namespace muster::sqlite {
namespace {

struct OpenFile;

// The locks and the WAL index that the connections of one database share.
struct Shared {
  std::set<const OpenFile*> readers;   // with a shared lock, or a higher one
  const OpenFile* reserved = nullptr;  // the only one that may write soon
  const OpenFile* pending = nullptr;   // no more readers, until it is exclusive
  std::vector<std::unique_ptr<char[]>> regions;
  std::array<std::set<const OpenFile*>, SQLITE_SHM_NLOCK> index_readers;
  std::array<const OpenFile*, SQLITE_SHM_NLOCK> index_writer = {};
};

struct OpenFile {
  std::string path;
  std::unique_ptr<File> file;
  bool only_reads = false;
  bool sync_folder = false;  // after the next sync
  std::shared_ptr<Shared> shared;
  int lock = SQLITE_LOCK_NONE;
};

struct State {
  FileOps* disk = nullptr;
  Mutex mutex;
  std::mt19937_64 random ABSL_GUARDED_BY(mutex);
  std::map<std::string, std::weak_ptr<Shared>> shared ABSL_GUARDED_BY(mutex);
  std::function<void()> before_reads ABSL_GUARDED_BY(mutex);
};

State& Global() {
  static State& state = *new State;
  return state;
}

thread_local int t_calls = 0;

struct CallScope {
  CallScope() { ++t_calls; }
  ~CallScope() { --t_calls; }
};

// SQLite's file object.
struct VfsFile {
  sqlite3_file base;
  OpenFile* open;
};

OpenFile& Of(sqlite3_file* file) { return *reinterpret_cast<VfsFile*>(file)->open; }

int Close(sqlite3_file* file) {
  const CallScope call;
  delete &Of(file);
  return SQLITE_OK;
}

int Read(sqlite3_file* file, void* data, int size, sqlite3_int64 offset) {
  const CallScope call;
  auto* bytes = static_cast<char*>(data);
  const auto got = Of(file).file->ReadAt({bytes, static_cast<size_t>(size)}, offset);
  if (!got.ok()) return SQLITE_IOERR_READ;
  if (static_cast<int>(*got) == size) return SQLITE_OK;
  std::memset(bytes + *got, 0, static_cast<size_t>(size) - *got);
  return SQLITE_IOERR_SHORT_READ;
}

int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  const CallScope call;
  const absl::Status written =
      Of(file).file->WriteAt({static_cast<const char*>(data), static_cast<size_t>(size)}, offset);
  if (written.ok()) return SQLITE_OK;
  return absl::IsResourceExhausted(written) ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  const CallScope call;
  return Of(file).file->Truncate(size).ok() ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

int Sync(sqlite3_file* file, int /*flags*/) {
  const CallScope call;
  OpenFile& open = Of(file);
  if (!open.file->SyncData().ok()) return SQLITE_IOERR_FSYNC;
  if (std::exchange(open.sync_folder, false)) {
    Global().disk->SyncFolder(ParentFolder(open.path)).IgnoreError();
  }
  return SQLITE_OK;
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  const CallScope call;
  const auto found = Of(file).file->Size();
  if (!found.ok()) return SQLITE_IOERR_FSTAT;
  *size = *found;
  return SQLITE_OK;
}

// ---- Locks ----

bool IsOther(const OpenFile* holder, const OpenFile& open) {
  return holder != nullptr && holder != &open;
}

int Lock(sqlite3_file* file, int level) {
  OpenFile& open = Of(file);
  MutexLock lock(Global().mutex);
  Shared& shared = *open.shared;
  if (open.lock >= level) return SQLITE_OK;
  if (IsOther(shared.pending, open)) return SQLITE_BUSY;
  if (level == SQLITE_LOCK_SHARED) {
    shared.readers.insert(&open);
  } else {
    if (IsOther(shared.reserved, open)) return SQLITE_BUSY;
    shared.reserved = &open;
    if (level == SQLITE_LOCK_EXCLUSIVE) {
      shared.pending = &open;
      open.lock = SQLITE_LOCK_PENDING;
      if (shared.readers.size() > 1) return SQLITE_BUSY;
    }
  }
  open.lock = level;
  return SQLITE_OK;
}

int Unlock(sqlite3_file* file, int level) {
  OpenFile& open = Of(file);
  MutexLock lock(Global().mutex);
  Shared& shared = *open.shared;
  if (open.lock <= level) return SQLITE_OK;
  if (shared.reserved == &open) shared.reserved = nullptr;
  if (shared.pending == &open) shared.pending = nullptr;
  if (level == SQLITE_LOCK_NONE) shared.readers.erase(&open);
  open.lock = level;
  return SQLITE_OK;
}

int CheckReservedLock(sqlite3_file* file, int* reserved) {
  MutexLock lock(Global().mutex);
  *reserved = Of(file).shared->reserved != nullptr ? 1 : 0;
  return SQLITE_OK;
}

// ---- The index of the WAL ----

int ShmMap(sqlite3_file* file, int region, int size, int extend, void volatile** memory) {
  MutexLock lock(Global().mutex);
  auto& regions = Of(file).shared->regions;
  while (extend != 0 && static_cast<int>(regions.size()) <= region) {
    regions.push_back(std::make_unique<char[]>(static_cast<size_t>(size)));
  }
  *memory = region < static_cast<int>(regions.size()) ? regions[static_cast<size_t>(region)].get()
                                                      : nullptr;
  return SQLITE_OK;
}

// Calls the hook of the readers.
void BeginRead() {
  std::function<void()> hook;
  {
    MutexLock lock(Global().mutex);
    hook = Global().before_reads;
  }
  if (hook) hook();
}

int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
  OpenFile& open = Of(file);
  constexpr int kBegins = SQLITE_SHM_LOCK | SQLITE_SHM_SHARED;
  if (open.only_reads && (flags & kBegins) == kBegins) BeginRead();
  MutexLock lock(Global().mutex);
  Shared& shared = *open.shared;
  const auto begin = static_cast<size_t>(offset);
  const size_t end = begin + static_cast<size_t>(count);
  const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  const bool acquire = (flags & SQLITE_SHM_LOCK) != 0;
  for (size_t i = begin; acquire && i < end; ++i) {
    const auto& readers = shared.index_readers[i];
    const bool others = readers.size() > readers.count(&open);
    if (IsOther(shared.index_writer[i], open) || (exclusive && others)) return SQLITE_BUSY;
  }
  for (size_t i = begin; i < end; ++i) {
    if (exclusive) {
      shared.index_writer[i] = acquire ? &open : nullptr;
    } else if (acquire) {
      shared.index_readers[i].insert(&open);
    } else {
      shared.index_readers[i].erase(&open);
    }
  }
  return SQLITE_OK;
}

void ShmBarrier(sqlite3_file*) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  MutexLock lock(Global().mutex);
}

int ShmUnmap(sqlite3_file* file, int /*remove*/) {
  OpenFile& open = Of(file);
  MutexLock lock(Global().mutex);
  for (size_t i = 0; i < SQLITE_SHM_NLOCK; ++i) {
    open.shared->index_readers[i].erase(&open);
    if (open.shared->index_writer[i] == &open) open.shared->index_writer[i] = nullptr;
  }
  return SQLITE_OK;
}

const sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = Close,
    .xRead = Read,
    .xWrite = Write,
    .xTruncate = Truncate,
    .xSync = Sync,
    .xFileSize = FileSize,
    .xLock = Lock,
    .xUnlock = Unlock,
    .xCheckReservedLock = CheckReservedLock,
    .xFileControl = [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; },
    .xSectorSize = [](sqlite3_file*) { return 4096; },
    .xDeviceCharacteristics = [](sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; },
    .xShmMap = ShmMap,
    .xShmLock = ShmLock,
    .xShmBarrier = ShmBarrier,
    .xShmUnmap = ShmUnmap,
};

// ---- The file system ----

OpenMode ModeOf(int flags) {
  if ((flags & SQLITE_OPEN_READONLY) != 0) return OpenMode::kRead;
  return (flags & SQLITE_OPEN_CREATE) != 0 ? OpenMode::kReadWriteOrCreate : OpenMode::kReadWrite;
}

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  const CallScope call;
  auto* vfs_file = reinterpret_cast<VfsFile*>(file);
  vfs_file->base.pMethods = nullptr;
  if (name == nullptr) return SQLITE_CANTOPEN;  // temporary files are in memory
  State& state = Global();
  auto opened = state.disk->Open(name, ModeOf(flags));
  if (!opened.ok()) return SQLITE_CANTOPEN;
  auto open = std::make_unique<OpenFile>();
  open->path = name;
  open->file = *std::move(opened);
  open->only_reads = (flags & SQLITE_OPEN_READONLY) != 0;
  constexpr int kJournals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;
  open->sync_folder = (flags & SQLITE_OPEN_CREATE) != 0 && (flags & kJournals) != 0;
  {
    MutexLock lock(state.mutex);
    std::weak_ptr<Shared>& shared = state.shared[open->path];
    open->shared = shared.lock();
    if (open->shared == nullptr) shared = open->shared = std::make_shared<Shared>();
  }
  vfs_file->open = open.release();
  vfs_file->base.pMethods = &kMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs*, const char* name, int sync) {
  const CallScope call;
  FileOps& disk = *Global().disk;
  const absl::Status removed = disk.Remove(name);
  if (absl::IsNotFound(removed)) return SQLITE_IOERR_DELETE_NOENT;
  if (!removed.ok()) return SQLITE_IOERR_DELETE;
  if (sync == 0) return SQLITE_OK;
  return disk.SyncFolder(ParentFolder(name)).ok() ? SQLITE_OK : SQLITE_IOERR_DIR_FSYNC;
}

int Access(sqlite3_vfs*, const char* name, int flags, int* result) {
  const CallScope call;
  const auto info = Global().disk->Stat(name);
  *result = info.ok() && (flags != SQLITE_ACCESS_EXISTS || info->size > 0) ? 1 : 0;
  return SQLITE_OK;
}

int FullPathname(sqlite3_vfs*, const char* name, int size, char* out) {
  if (std::strlen(name) >= static_cast<size_t>(size)) return SQLITE_CANTOPEN;
  std::strcpy(out, name);
  return SQLITE_OK;
}

int Randomness(sqlite3_vfs*, int size, char* out) {
  State& state = Global();
  MutexLock lock(state.mutex);
  std::generate_n(out, size, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
    return static_cast<char>(state.random());
  });
  return size;
}

sqlite3_vfs* g_real = nullptr;
sqlite3_vfs g_simulated;

}  // namespace

SimulatedVfs::SimulatedVfs(FileOps& disk, uint64_t seed) {
  State& state = Global();
  state.disk = &disk;
  {
    MutexLock lock(state.mutex);
    state.random.seed(seed);
    state.shared.clear();
  }
  g_real = sqlite3_vfs_find(nullptr);
  g_simulated = *g_real;
  g_simulated.zName = "simulated";
  g_simulated.szOsFile = sizeof(VfsFile);
  g_simulated.xOpen = Open;
  g_simulated.xDelete = Delete;
  g_simulated.xAccess = Access;
  g_simulated.xFullPathname = FullPathname;
  g_simulated.xRandomness = Randomness;
  sqlite3_vfs_register(&g_simulated, 1);
  sqlite3_randomness(0, nullptr);  // the next number is drawn from this VFS
}

SimulatedVfs::~SimulatedVfs() {
  sqlite3_vfs_unregister(&g_simulated);
  sqlite3_vfs_register(g_real, 1);
}

void SimulatedVfs::BeforeReads(std::function<void()> hook) {
  MutexLock lock(Global().mutex);
  Global().before_reads = std::move(hook);
}

bool SimulatedVfs::InCall() { return t_calls > 0; }

}  // namespace muster::sqlite
