// The frames of a recorded peer, for tests: one a line, in hexadecimal; lines that begin with '#' say what they are.
//
//   for (const std::string& frame : ReadRecordedFrames("remote/association/recorded_peer_v1.txt")) stream.Write(frame);
#ifndef FRAKTOR_REMOTE_ASSOCIATION_RECORDED_FRAMES_H_
#define FRAKTOR_REMOTE_ASSOCIATION_RECORDED_FRAMES_H_

#include <cstddef>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace fraktor::inline v0 {

inline std::vector<std::string> ReadRecordedFrames(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> frames;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::string frame;
    for (size_t i = 0; i + 1 < line.size(); i += 2) {
      frame.push_back(static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16)));
    }
    frames.push_back(std::move(frame));
  }
  return frames;
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_REMOTE_ASSOCIATION_RECORDED_FRAMES_H_
