#!/usr/bin/env bash
# Debian's Chromium, for the browser tests; fails with one sentence where it cannot be installed.
set -euo pipefail
if ! command -v apt-get > /dev/null || [ "$(id -u)" != 0 ]; then
  echo "error: there is no Chromium; install it (on Debian as root: apt-get install chromium)" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core > /dev/null ||
  { echo "error: APT could not install chromium" >&2; exit 1; }
