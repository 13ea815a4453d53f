#!/bin/sh
echo "bazel coverage needs the coverage tools of the Bazel project; use gcov on a build with --copt=--coverage instead" >&2
exit 1
