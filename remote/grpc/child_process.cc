#include "fraktor/remote/grpc/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

extern char** environ;

namespace fraktor::inline v0 {

std::string BesideThisProgram(std::string_view name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::vector<std::string>& command) {
  int input[2];
  int output[2];
  if (pipe2(input, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  if (pipe2(output, O_CLOEXEC) != 0) {
    const int why = errno;
    close(input[0]);
    close(input[1]);
    return absl::ErrnoToStatus(why, "pipe2");
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], 0);
  posix_spawn_file_actions_adddup2(&actions, output[1], 1);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int failed = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  if (failed != 0) {
    close(input[1]);
    close(output[0]);
    return absl::ErrnoToStatus(failed, absl::StrCat("cannot start ", command[0]));
  }
  return ChildProcess(pid, input[1], output[0]);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    Signal(SIGKILL);
    Wait();
  }
  CloseInput();
  if (output_ >= 0) close(output_);
}

absl::StatusOr<std::string> ChildProcess::ReadLine() {
  for (;;) {
    const size_t end = read_.find('\n');
    if (end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    char bytes[4096];
    const ssize_t count = read(output_, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::OutOfRangeError(absl::StrCat("the program has ended its output with \"", read_, "\""));
    read_.append(bytes, static_cast<size_t>(count));
  }
}

void ChildProcess::WriteLine(std::string_view line) {
  const std::string text = absl::StrCat(std::string(line), "\n");
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(input_, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    done += static_cast<size_t>(count);
  }
}

void ChildProcess::CloseInput() {
  if (input_ >= 0) close(std::exchange(input_, -1));
}

void ChildProcess::Signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

int ChildProcess::Wait() {
  if (pid_ <= 0) return 0;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace fraktor::inline v0
