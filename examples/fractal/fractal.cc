// A fractal, drawn by coroutines on four workers: each row of the picture is a task, and one future waits for all of them.
#include <unistd.h>

#include <array>
#include <complex>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/future/when_all.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/serial_executor.h"
#include "fraktor/utils/toolbox/std_toolbox.h"

namespace {

constexpr int kWidth = 100;
constexpr int kHeight = 34;
constexpr int kWorkers = 4;
constexpr int kMaxSteps = 256;

// How long a point of the plane stays near the origin; kMaxSteps if it stays for good.
int StepsToEscape(std::complex<double> point) {
  std::complex<double> z = 0;
  for (int step = 0; step < kMaxSteps; ++step) {
    if (std::norm(z) > 4) return step;
    z = z * z + point;
  }
  return kMaxSteps;
}

std::string Pixel(int steps, bool coloured) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  constexpr std::array<int, 12> kColours = {17, 18, 19, 20, 26, 32, 38, 44, 50, 190, 220, 231};
  if (!coloured) return std::string(1, steps == kMaxSteps ? ' ' : kShades[static_cast<size_t>(steps) % kShades.size()]);
  if (steps == kMaxSteps) return "\033[48;5;16m ";
  return absl::StrCat("\033[48;5;", kColours[static_cast<size_t>(steps) % kColours.size()], "m ");
}

// A task is a coroutine: lazy, and it runs where it is started. This one has nothing to wait for.
fraktor::Task<std::string> DrawRow(int row, bool coloured) {
  std::string pixels;
  for (int column = 0; column < kWidth; ++column) {
    const std::complex<double> point(-2.2 + 3.2 * column / kWidth, -1.2 + 2.4 * row / kHeight);
    pixels += Pixel(StepsToEscape(point), coloured);
  }
  if (coloured) pixels += "\033[0m";
  co_return pixels;
}

absl::Status DrawFractal() {
  const bool coloured = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;

  FRAKTOR_ASSIGN_OR_RETURN(auto toolbox, fraktor::StdToolbox::Make({.name = "fractal"}));
  std::vector<std::unique_ptr<fraktor::SerialExecutor>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    FRAKTOR_ASSIGN_OR_RETURN(auto worker,
                             fraktor::SerialExecutor::Make(*toolbox, {.name = absl::StrCat("painter-", i)}));
    workers.push_back(std::move(worker));
  }

  const fraktor::Instant start = toolbox->Now();
  std::vector<fraktor::Future<std::string>> rows;
  for (int row = 0; row < kHeight; ++row) {
    rows.push_back(DrawRow(row, coloured).Start(*workers[static_cast<size_t>(row % kWorkers)]));
  }
  FRAKTOR_ASSIGN_OR_RETURN(std::vector<std::string> picture, fraktor::WhenAll(std::move(rows)).Wait());

  for (const std::string& row : picture) std::cout << row << "\n";
  std::cout << "\nHello from fraktor: " << picture.size() << " tasks on " << kWorkers << " workers drew this in "
            << absl::FormatDuration(toolbox->Now() - start) << ".\n";
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = DrawFractal();
  if (status.ok()) return EXIT_SUCCESS;
  std::cerr << "fractal: " << status << "\n";
  return EXIT_FAILURE;
}
