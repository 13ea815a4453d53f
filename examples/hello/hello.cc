#include <iostream>

#include "absl/strings/str_format.h"

int main() { std::cout << absl::StrFormat("Hello from %s\n", "fraktor"); }
