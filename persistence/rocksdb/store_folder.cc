#include "fraktor/persistence/rocksdb/store_folder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rocksdb/env.h"
#include "rocksdb/status.h"

#include "fraktor/persistence/rocksdb/commit_mark.h"

namespace fraktor::inline v0 {
namespace {

constexpr size_t kMaxNames = 5;
constexpr const char* kFirstManifest = "MANIFEST-000001";
// It has a few words; one of a database that is in use grows.
constexpr uint64_t kMaxFirstManifestBytes = 4096;

bool IsNumbered(const std::string& name, const std::string& extension) {
  if (name.size() <= extension.size() || !absl::EndsWith(name, extension)) return false;
  return std::all_of(name.begin(), name.end() - static_cast<std::ptrdiff_t>(extension.size()),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

// What may be there without a database: texts, the lock, and what is not yet named CURRENT or IDENTITY.
bool IsLeftover(const std::string& name) {
  return name == "LOG" || absl::StartsWith(name, "LOG.old") || name == "LOCK" || name == "IDENTITY" ||
         name == kProbeName || name == "lost+found" || IsNumbered(name, ".dbtmp");
}

bool IsTable(const std::string& name) { return IsNumbered(name, ".sst") || IsNumbered(name, ".blob"); }

bool IsOfDatabase(const std::string& name) {
  return IsTable(name) || IsNumbered(name, ".log") || absl::StartsWith(name, "MANIFEST-") ||
         absl::StartsWith(name, "OPTIONS-") || name == CommitMark::kFileName;
}

std::string Some(std::vector<std::string> names) {
  const size_t count = names.size();
  if (count > kMaxNames) names.resize(kMaxNames);
  for (std::string& name : names) name = absl::CHexEscape(name);
  return absl::StrCat(absl::StrJoin(names, ", "),
                      count > kMaxNames ? absl::StrCat(" and ", count - kMaxNames, " more") : "");
}

}  // namespace

rocksdb::Status StoreFolder::Look(rocksdb::Env& env, const std::string& path, StoreFolder* folder) {
  *folder = StoreFolder();
  std::vector<std::string> names;
  const rocksdb::Status listed = env.GetChildren(path, &names);
  if (listed.IsNotFound()) {
    // RocksDB says the same of what it may not see, and of a file.
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) folder->kind = Kind::kFile;
    error.clear();
    const std::filesystem::directory_iterator allowed(path, error);
    if (error != std::errc::permission_denied) return rocksdb::Status::OK();
    return rocksdb::Status::IOError(path, "Permission denied");
  }
  if (!listed.ok()) return listed;
  std::sort(names.begin(), names.end());
  std::vector<std::string> of_database;
  std::vector<std::string> foreign;
  bool has_current = false;
  bool has_first_manifest = false;
  size_t manifests = 0;
  for (const std::string& name : names) {
    if (name == "." || name == ".." || IsLeftover(name)) continue;
    has_current = has_current || name == "CURRENT";
    folder->has_logs = folder->has_logs || IsNumbered(name, ".log");
    folder->has_tables = folder->has_tables || IsTable(name);
    if (absl::StartsWith(name, "MANIFEST-")) ++manifests;
    if (name == kFirstManifest) {
      has_first_manifest = true;
      uint64_t bytes = 0;
      if (env.GetFileSize(path + "/" + name, &bytes).ok() && bytes <= kMaxFirstManifestBytes) continue;
    }
    (IsOfDatabase(name) ? of_database : foreign).push_back(name);
  }
  folder->has_only_first_manifest = has_first_manifest && manifests == 1;
  if (has_current) {
    folder->kind = Kind::kDatabase;
  } else if (!of_database.empty()) {
    folder->kind = Kind::kNoCurrent;
    folder->names = Some(of_database);
  } else if (!foreign.empty()) {
    folder->kind = Kind::kForeign;
    folder->names = Some(foreign);
  } else {
    folder->kind = Kind::kNew;
  }
  return rocksdb::Status::OK();
}

}  // namespace fraktor::inline v0
