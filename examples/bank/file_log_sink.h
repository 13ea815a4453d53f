// FileLogSink: lines of a log at the end of a file, so that they are not between those that somebody watches.
//
//   FRAKTOR_ASSIGN_OR_RETURN(std::unique_ptr<FileLogSink> log, FileLogSink::Open("/tmp/bank/customers.log"));
//   ActorSystemOptions options{.log_sink = log.get()};
//
// Thread safety: any thread.
#ifndef FRAKTOR_EXAMPLES_BANK_FILE_LOG_SINK_H_
#define FRAKTOR_EXAMPLES_BANK_FILE_LOG_SINK_H_

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/event/log.h"

namespace bank {

class FileLogSink final : public fraktor::LogSink {
 public:
  static absl::StatusOr<std::unique_ptr<FileLogSink>> Open(const std::string& path) {
    std::FILE* const file = std::fopen(path.c_str(), "a");
    if (file == nullptr) return absl::UnavailableError(absl::StrCat("cannot write ", path));
    return std::unique_ptr<FileLogSink>(new FileLogSink(file));
  }
  ~FileLogSink() override { std::fclose(file_); }

  void Write(const fraktor::LogRecord& record) override {
    const std::string line = absl::StrCat(fraktor::FormatLogRecord(record), "\n");
    std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);
  }

 private:
  explicit FileLogSink(std::FILE* file) : file_(file) {}

  std::FILE* const file_;
};

}  // namespace bank

#endif  // FRAKTOR_EXAMPLES_BANK_FILE_LOG_SINK_H_
