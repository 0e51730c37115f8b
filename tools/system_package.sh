#!/usr/bin/env bash
# system_package.sh PROGRAM PACKAGE CONSEQUENCE: get a package of the system whose program is missing, where nobody has to be asked;
# where that cannot be done, say what follows from it, and go on.
set -euo pipefail
program=$1 package=$2 consequence=$3

command -v "$program" >/dev/null && exit 0
sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo -n)
if command -v apt-get >/dev/null && "${sudo[@]}" true 2>/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  { "${sudo[@]}" apt-get update -qq && "${sudo[@]}" apt-get install -y -qq --no-install-recommends "$package"; } \
    >/dev/null 2>&1 </dev/null && exit 0
fi
echo "$package could not be installed; $consequence." >&2
