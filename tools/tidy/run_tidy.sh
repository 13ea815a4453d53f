#!/usr/bin/env bash
# Checks the repository with the Python of the machine.
exec env PYTHONDONTWRITEBYTECODE=1 python3 tools/tidy/tidy.py
