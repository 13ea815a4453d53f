// ChildProcess: a program that a test, a benchmark or an example starts, listens to, and ends.
//
//   ChildProcess node = ChildProcess::Start({BesideThisProgram("node_program"), "--port", "0"}).value();
//   std::string line = node.ReadLine().value();          // what it has printed
//   node.Signal(SIGKILL);
//   node.Wait();
//
// It gets an end of its input when the object goes, and is killed and waited for if it has not been.
//
// Thread safety: one thread at a time.
#ifndef FRAKTOR_REMOTE_GRPC_CHILD_PROCESS_H_
#define FRAKTOR_REMOTE_GRPC_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace fraktor::inline v0 {

// The path of a program in the folder of this one.
std::string BesideThisProgram(std::string_view name);

class ChildProcess {
 public:
  // The first is the program, looked for as a shell does.
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& command);

  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        input_(std::exchange(other.input_, -1)),
        output_(std::exchange(other.output_, -1)),
        read_(std::move(other.read_)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  // Waits for it. OutOfRange at the end of what it prints.
  absl::StatusOr<std::string> ReadLine();
  // Into its input, with an end of line.
  void WriteLine(std::string_view line);
  void CloseInput();
  void Signal(int number) const;
  // Waits for its end: what it has returned, or minus the signal that has ended it.
  int Wait();

 private:
  ChildProcess(pid_t pid, int input, int output) : pid_(pid), input_(input), output_(output) {}

  pid_t pid_;
  int input_;
  int output_;
  std::string read_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_GRPC_CHILD_PROCESS_H_
