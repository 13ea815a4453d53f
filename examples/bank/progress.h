// Progress: one line that changes, on a terminal; elsewhere a line each time.
//
//   Progress progress(std::cout, isatty(STDOUT_FILENO) != 0);
//   progress.Show("4.0 s  1203 transfers/s");
//   progress.Say("kill -9 of compute-2");                       // a line that stays
//
// Thread safety: one thread at a time.
#ifndef FRAKTOR_EXAMPLES_BANK_PROGRESS_H_
#define FRAKTOR_EXAMPLES_BANK_PROGRESS_H_

#include <ostream>
#include <string_view>

namespace bank {

class Progress {
 public:
  Progress(std::ostream& out, bool is_terminal) : out_(out), is_terminal_(is_terminal) {}
  ~Progress() { EndLine(); }

  void Show(std::string_view line) {
    if (is_terminal_) {
      // To the beginning of the line, and what was there goes.
      out_ << "\r\033[K" << line << std::flush;
      is_open_ = true;
    } else {
      out_ << line << std::endl;
    }
  }
  void Say(std::string_view line) {
    EndLine();
    out_ << line << std::endl;
  }

 private:
  void EndLine() {
    if (is_open_) out_ << std::endl;
    is_open_ = false;
  }

  std::ostream& out_;
  const bool is_terminal_;
  bool is_open_ = false;
};

}  // namespace bank

#endif  // FRAKTOR_EXAMPLES_BANK_PROGRESS_H_
