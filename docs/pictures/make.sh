#!/bin/sh
# The documents' pictures, made from fixtures/, as `make pictures` runs it: needs `hoicli` with its extras images and plot on
# the PATH, and a Chromium or Chrome (CHROMIUM=PATH names another), which takes the pictures of HTML pages.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
fixtures=$here/../../fixtures
for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
    browser=$(command -v "$name" 2>/dev/null) && break
done
[ "$browser" ] || { echo "make pictures: needs Chromium or Chrome on the PATH (apt install chromium), or CHROMIUM=PATH" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cp "$fixtures/gt.jsonl" "$fixtures/other.jsonl" .
cp "$fixtures/predictions.jsonl" preds.jsonl

# Take the picture of a page: page NAME FILE.html HEIGHT
page() {
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="1000,$3" --virtual-time-budget=10000 \
        --screenshot="$folder/$1.png" "file://$folder/$2" >/dev/null 2>&1
}

hoicli diagnose --gt gt.jsonl --plot errors.png preds.jsonl other.jsonl -o rows.jsonl 2>/dev/null
hoicli curves --protocol diag --gt gt.jsonl --plot curves.png preds.jsonl other.jsonl -o rows.jsonl 2>/dev/null
hoicli robust "$fixtures/robust/rows.jsonl" --plot robust.png -o rows.jsonl 2>/dev/null
hoicli robust "$fixtures/robust/rows.jsonl" --plot robust-heatmap.png --plot-kind heatmap -o rows.jsonl 2>/dev/null
hoicli corrupt --preview "$fixtures/robust/images/scene_03.png" -o corruptions.png
hoicli show --gt gt.jsonl --images "$fixtures/images" --image-id HICO_test2015_00000005,HICO_test2015_00000007 --top 3 --size 640 -o show.png preds.jsonl
hoicli explore --gt gt.jsonl --images "$fixtures/images" -o explorer preds.jsonl other.jsonl 2>/dev/null
page explorer 'explorer/index.html#view=class&class=125' 1000

# At most 1000 pixels wide (the sheet of a hundred pictures 800), in 256 colours: small files.
python3 - "$here" <<'PYTHON'
import sys
from pathlib import Path
from PIL import Image

for path in sorted(Path().glob("*.png")):
    picture = Image.open(path).convert("RGB")
    width = 800 if path.stem == "corruptions" else 1000
    picture.thumbnail((width, 2000), Image.Resampling.LANCZOS)
    target = Path(sys.argv[1]) / path.name
    picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(target, optimize=True)
    print(f"docs/pictures/{target.name}: {target.stat().st_size // 1000} kB")
PYTHON
