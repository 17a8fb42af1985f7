#!/usr/bin/env bash
# src/report/page.html is what web/ builds to, byte for byte; the lock file names no registry.
set -euo pipefail
. "$(dirname "$0")/prepare.sh"
! grep -n '"resolved"' "$root/web/package-lock.json" || { echo "FAILED: the lock file names the host of a registry"; exit 1; }
cd "$web"
npx --no-install tsc --noEmit
npx --no-install vite build >build.log 2>&1 || { cat build.log; exit 1; }
node install.mjs page.html
cmp page.html "$root/src/report/page.html" || { echo "FAILED: src/report/page.html is not what web/ builds to; run: cd web && npm ci && npm run build"; exit 1; }
