#!/usr/bin/env bash
# In the archive of gpu-pack: runs gpu-check with the Node beside it. Arguments go to scripts/gpu-check.mjs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH="$here/bin:$PATH"
exec "$here/bin/node" "$here/project/scripts/gpu-check.mjs" "$@"
