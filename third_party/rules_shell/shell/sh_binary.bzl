"""rules_shell for a Bazel whose shell rules are built in."""

sh_binary = native.sh_binary
