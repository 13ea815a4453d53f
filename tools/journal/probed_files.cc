#include "fraktor/tools/journal/probed_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_reader.h"

namespace fraktor::inline v0 {
namespace {

// Refuses to open some files. They are known by their names alone: nobody else spells the path of the folder.
class RefusingFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit RefusingFileSystem(absl::flat_hash_set<std::string> refused)
      : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()), refused_(std::move(refused)) {}
  const char* Name() const override { return "RefusingFileSystem"; }

  rocksdb::IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override {
    if (refused_.contains(std::filesystem::path(path).filename().string())) {
      return rocksdb::IOStatus::Corruption("its table properties are damaged so that RocksDB aborts", path);
    }
    return rocksdb::FileSystemWrapper::NewRandomAccessFile(path, options, file, debug);
  }

 private:
  const absl::flat_hash_set<std::string> refused_;
};

std::vector<std::string> TableFiles(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".sst") files.push_back(at->path().string());
  }
  return files;
}

// The child: a byte for each file that it has come through.
[[noreturn]] void OpenAll(absl::Span<const std::string> files, int opened) {
  // Nobody is to hear of an abort, and nothing is to be kept of it.
  signal(SIGABRT, SIG_DFL);
  const rlimit none{};
  setrlimit(RLIMIT_CORE, &none);
  if (const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  for (const std::string& file : files) {
    rocksdb::SstFileReader(rocksdb::Options()).Open(file).PermitUncheckedError();
    if (write(opened, "", 1) != 1) break;
  }
  _exit(0);
}

// Opens the files in a child. True if it has aborted; `opened` is how many it has come through.
bool AbortsAt(absl::Span<const std::string> files, size_t& opened) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  const pid_t child = fork();
  if (child == 0) OpenAll(files, ends[1]);
  close(ends[1]);
  opened = 0;
  char byte = 0;
  for (ssize_t got = 1; child > 0 && (got > 0 || (got < 0 && errno == EINTR));) {
    got = read(ends[0], &byte, 1);
    if (got > 0) ++opened;
  }
  close(ends[0]);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return child > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && opened < files.size();
}

absl::flat_hash_set<std::string> AbortingFiles(const std::string& folder) {
  absl::flat_hash_set<std::string> aborting;
  const std::vector<std::string> files = TableFiles(folder);
  absl::Span<const std::string> rest = files;
  for (size_t opened = 0; !rest.empty() && AbortsAt(rest, opened); rest.remove_prefix(opened + 1)) {
    aborting.insert(std::filesystem::path(rest[opened]).filename().string());
  }
  return aborting;
}

}  // namespace

ProbedFiles::ProbedFiles(const std::string& folder)
    : env_(rocksdb::NewCompositeEnv(std::make_shared<RefusingFileSystem>(AbortingFiles(folder)))) {}

}  // namespace fraktor::inline v0
