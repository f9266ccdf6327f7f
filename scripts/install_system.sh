#!/usr/bin/env bash
# Debian packages that the checks and tests use beside Python's. Installs what is missing where it may (as root, with
# apt-get); elsewhere it says what to install and goes on: what needs it then says so.
set -euo pipefail

# command or pattern of files:package
wanted=(bash:bash curl:curl git:git jq:jq "/usr/lib/postgresql/*/bin/postgres:postgresql" redis-server:redis-server
    promtool:prometheus)

missing=()
for pair in "${wanted[@]}"; do
    compgen -G "${pair%%:*}" >/dev/null || command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
if [ "${#missing[@]}" -eq 0 ]; then exit 0; fi

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
    printf 'install: these packages are missing, and some checks need them: %s\n' "${missing[*]}" >&2
fi
