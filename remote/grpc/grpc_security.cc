#include "fraktor/remote/grpc/grpc_security.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/strings/string_view.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor::inline v0 {
namespace {

constexpr std::string_view kCertificate = "CERTIFICATE-----";
constexpr std::string_view kKey = "PRIVATE KEY-----";

absl::Status CheckPem(std::string_view what, std::string_view where, std::string_view text, std::string_view label) {
  if (text.find("-----BEGIN ") != std::string_view::npos && text.find(label) != std::string_view::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("GrpcSecurity: the ", ToAbsl(what), ToAbsl(where),
                                                 " is not in PEM; it must have a line \"-----BEGIN ", ToAbsl(label),
                                                 "\""));
}

absl::Status CheckFile(std::string_view what, const std::string& path, std::string_view label) {
  if (path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("GrpcSecurity: MutualTls needs the ", ToAbsl(what)));
  }
  std::ifstream file(path);
  if (!file.good()) {
    return absl::InvalidArgumentError(absl::StrCat("GrpcSecurity: the ", ToAbsl(what), " at \"", path,
                                                   "\" cannot be read: ", std::strerror(errno),
                                                   "; is the path right, and may this user read it?"));
  }
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return CheckPem(what, absl::StrCat(" at \"", path, "\""), text, label);
}

absl::Status CheckTexts(const PemTexts& texts) {
  FRAKTOR_RETURN_IF_ERROR(CheckPem("roots", "", texts.roots, kCertificate));
  FRAKTOR_RETURN_IF_ERROR(CheckPem("certificate", "", texts.certificate, kCertificate));
  return CheckPem("private_key", "", texts.private_key, kKey);
}

// A file without a name, which only this process can open, by its number.
class NamelessFile {
 public:
  NamelessFile() = default;
  ~NamelessFile() {
    if (number_ >= 0) close(number_);
  }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  // Whoever opens the path gets the old text or the new one, nothing between.
  absl::Status Set(std::string_view text) {
    const int fresh = memfd_create("fraktor-pem", MFD_CLOEXEC);
    if (fresh < 0) return absl::ErrnoToStatus(errno, "GrpcSecurity: memfd_create");
    for (size_t done = 0; done < text.size();) {
      const ssize_t count = write(fresh, text.data() + done, text.size() - done);
      if (count <= 0) {
        const int why = errno;
        close(fresh);
        return absl::ErrnoToStatus(why, "GrpcSecurity: write to a memfd");
      }
      done += static_cast<size_t>(count);
    }
    if (number_ < 0) {
      number_ = fresh;
      return absl::OkStatus();
    }
    const int switched = dup3(fresh, number_, O_CLOEXEC);
    const int why = errno;
    close(fresh);
    return switched < 0 ? absl::ErrnoToStatus(why, "GrpcSecurity: dup3") : absl::OkStatus();
  }
  std::string path() const { return absl::StrCat("/proc/self/fd/", number_); }

 private:
  int number_ = -1;
};

struct NamelessFiles {
  NamelessFile roots;
  NamelessFile certificate;
  NamelessFile private_key;
};

// gRPC may look at files for some seconds after the last user of a security has gone, and must not find those of another
// one under the same numbers. So the last ones are kept open.
void Retire(std::unique_ptr<NamelessFiles> files) {
  constexpr size_t kKept = 16;
  struct Retired {
    Mutex mutex;
    std::deque<std::unique_ptr<NamelessFiles>> files ABSL_GUARDED_BY(mutex);
  };
  static Retired& retired = *new Retired;  // NOLINT(cppcoreguidelines-owning-memory): of the process.
  MutexLock lock(retired.mutex);
  retired.files.push_back(std::move(files));
  if (retired.files.size() > kKept) retired.files.pop_front();
}

}  // namespace

// gRPC knows how to look at files again, and not how to look at texts again: so texts become files, in memory.
class GrpcSecurity::Texts {
 public:
  ~Texts() {
    MutexLock lock(mutex_);
    Retire(std::move(files_));
  }

  absl::Status Set(const PemTexts& texts) {
    MutexLock lock(mutex_);
    FRAKTOR_RETURN_IF_ERROR(files_->roots.Set(texts.roots));
    FRAKTOR_RETURN_IF_ERROR(files_->private_key.Set(texts.private_key));
    return files_->certificate.Set(texts.certificate);
  }
  // After the first Set.
  PemFiles Files() {
    MutexLock lock(mutex_);
    return {.roots = files_->roots.path(),
            .certificate = files_->certificate.path(),
            .private_key = files_->private_key.path(),
            .reload = absl::Seconds(1)};
  }
  // What went wrong with the first.
  absl::Status first = absl::OkStatus();

 private:
  Mutex mutex_;
  std::unique_ptr<NamelessFiles> files_ ABSL_GUARDED_BY(mutex_) = std::make_unique<NamelessFiles>();
};

GrpcSecurity GrpcSecurity::MutualTls(PemFiles files, std::vector<std::string> peer_names) {
  GrpcSecurity security(Kind::kMutualTls);
  security.files_ = std::move(files);
  security.peer_names_ = std::move(peer_names);
  return security;
}

GrpcSecurity GrpcSecurity::MutualTls(const PemTexts& texts, std::vector<std::string> peer_names) {
  GrpcSecurity security(Kind::kMutualTls);
  security.peer_names_ = std::move(peer_names);
  security.texts_ = std::make_shared<Texts>();
  security.texts_->first = CheckTexts(texts);
  if (security.texts_->first.ok()) security.texts_->first = security.texts_->Set(texts);
  if (security.texts_->first.ok()) security.files_ = security.texts_->Files();
  return security;
}

GrpcSecurity GrpcSecurity::InsecureLoopback() { return GrpcSecurity(Kind::kInsecureLoopback); }

GrpcSecurity GrpcSecurity::Insecure() { return GrpcSecurity(Kind::kInsecure); }

absl::Status GrpcSecurity::Replace(const PemTexts& texts) {
  if (texts_ == nullptr || !texts_->first.ok()) {
    return absl::FailedPreconditionError(
        "GrpcSecurity::Replace is for MutualTls of PemTexts that were good; of PemFiles, change the files");
  }
  FRAKTOR_RETURN_IF_ERROR(CheckTexts(texts));
  return texts_->Set(texts);
}

bool GrpcSecurity::Admits(std::string_view name) const {
  for (const std::string_view pattern : peer_names_) {
    if (pattern == "*" || pattern == name) return true;
    if (pattern.substr(0, 2) != "*.") continue;
    const size_t dot = name.find('.');
    if (dot != 0 && dot != std::string_view::npos && name.substr(dot) == pattern.substr(1)) return true;
  }
  return false;
}

absl::Status GrpcSecurity::Validate() const {
  if (kind_ != Kind::kMutualTls) return absl::OkStatus();
  if (peer_names_.empty()) {
    return absl::InvalidArgumentError(
        "GrpcSecurity: MutualTls needs the names of peers that may talk to this node; {\"*\"} admits everybody whom "
        "the "
        "roots have signed");
  }
  for (const std::string& name : peer_names_) {
    if (!name.empty()) continue;
    return absl::InvalidArgumentError(
        "GrpcSecurity: one of the peer_names of MutualTls is empty, and no certificate is for \"\"; leave it out, or "
        "write \"*\" for everybody whom the roots have signed");
  }
  if (texts_ != nullptr) return texts_->first;
  if (files_.reload < absl::Seconds(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("GrpcSecurity: PemFiles.reload is ", absl::FormatDuration(files_.reload), "; use at least 1s"));
  }
  FRAKTOR_RETURN_IF_ERROR(CheckFile("roots", files_.roots, kCertificate));
  FRAKTOR_RETURN_IF_ERROR(CheckFile("certificate", files_.certificate, kCertificate));
  return CheckFile("private_key", files_.private_key, kKey);
}

}  // namespace fraktor::inline v0
