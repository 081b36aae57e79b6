#!/usr/bin/env bash
# Compares PREDICTIONS with BASELINE by PROTOCOL on GT and fails if they are worse by more than MARGIN points of mAP.
# Writes differences.jsonl, the table into the job's summary (GITHUB_STEP_SUMMARY) and the verdict into GITHUB_OUTPUT.
# Exit code: that of hoicli compare (0 better or equal, 3 worse; anything else: the comparison did not work).
set -uo pipefail
# OPTIONS is split at spaces, since a workflow's input is one text.
# shellcheck disable=SC2086
hoicli compare --gt "$GT" --protocol "${PROTOCOL:-hico}" --margin "${MARGIN:-0}" --no-errors --fail-if-worse --quiet \
    ${OPTIONS:-} -o differences.jsonl "$BASELINE" "$PREDICTIONS"
code=$?
case $code in 0) verdict=better-or-equal ;; 3) verdict=worse ;; *) verdict=broken ;; esac
echo "verdict=$verdict" >> "${GITHUB_OUTPUT:-/dev/null}"
if [ $code = 0 ] || [ $code = 3 ]; then
    { echo "### hoicli: $verdict"; echo; hoicli table --format md --quiet differences.jsonl; } >> "${GITHUB_STEP_SUMMARY:-/dev/null}"
fi
exit $code
