// The command line tool for journals, without the events of a program: those are shown in hex.
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "fraktor/tools/journal/journal_tool.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return fraktor::RunJournalTool(
      arguments, {.in = std::cin, .out = std::cout, .err = std::cerr, .is_terminal = isatty(STDERR_FILENO) != 0}, {});
}
