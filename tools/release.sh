#!/usr/bin/env bash
# release.sh [FOLDER]: build the source archive and the wheel into FOLDER (dist), check both, install the wheel into a new environment
# (FOLDER/fresh), and run the demo with it in an empty folder: compare, predict, export. PYTHON chooses the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD python=${PYTHON:-python3} out=${1:-dist}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"/separatrix-* "$out/fresh"

"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check build twine
"$work/tools/bin/python" -m build --outdir "$out" "$root" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
"$work/tools/bin/twine" check --strict "$out"/separatrix-*

"$python" -m venv "$out/fresh"
"$out/fresh/bin/pip" install --quiet --disable-pip-version-check "$out"/separatrix-*.whl
"$out/fresh/bin/pip" check
cd "$work"
unset PYTHONPATH  # the installed package, not the tree
cp "$root/examples/data/penguins.csv" .
"$out/fresh/bin/separatrix" --version
"$out/fresh/bin/separatrix" compare penguins.csv --target sex --out penguins --quiet
"$out/fresh/bin/separatrix" predict penguins/model.safetensors penguins.csv --out answers.csv --quiet
"$out/fresh/bin/separatrix" export penguins/model.safetensors --to sql --out model.sql
[ "$(wc -l <answers.csv)" -eq "$(wc -l <penguins.csv)" ]
[ -s penguins/report.html ] && [ -s model.sql ]
echo "Ready: $(cd "$out" && ls -d separatrix-* | tr '\n' ' ')"
