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
sample=$fixtures/sample
cp "$sample"/*.jsonl.gz .

# Take the picture of a page: page NAME FILE.html HEIGHT [WIDTH]
page() {
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="${4:-1000},$3" --virtual-time-budget=10000 \
        --screenshot="$folder/$1.png" "file://$folder/$2" >/dev/null 2>&1
}

hoicli diagnose --gt gt.jsonl.gz --plot errors.png baseline.jsonl.gz ours.jsonl.gz -o rows.jsonl
hoicli diagnose --gt gt.jsonl.gz --plot no-interaction.png --plot-kind no-interaction baseline.jsonl.gz ours.jsonl.gz -o rows.jsonl
hoicli diagnose --gt gt.jsonl.gz --plot frequency.png --plot-kind frequency baseline.jsonl.gz ours.jsonl.gz -o rows.jsonl
hoicli confusion --gt gt.jsonl.gz --plot confusion.png ours.jsonl.gz -o rows.jsonl
hoicli pairstats --gt gt.jsonl.gz --nms-sweep 0.3,0.5,0.7 --plot pairs.png baseline.jsonl.gz ours.jsonl.gz -o rows.jsonl
hoicli agree "$fixtures/agree/ratings.jsonl" --plot votes.png --plot-kind votes -o rows.jsonl
hoicli agree "$fixtures/agree/ratings.jsonl" --plot kappa.png --plot-kind kappa -o rows.jsonl
hoicli curves --protocol diag --gt gt.jsonl.gz --plot curves.png baseline.jsonl.gz ours.jsonl.gz -o rows.jsonl
hoicli robust "$fixtures/robust/rows.jsonl" --plot robust.png -o rows.jsonl
hoicli robust "$fixtures/robust/rows.jsonl" --plot robust-heatmap.png --plot-kind heatmap -o rows.jsonl
hoicli corrupt --preview "$sample/pictures/sample_0010.png" -o corruptions.png
hoicli corrupt --preview "$sample/pictures/sample_0010.png" --corruption weather -o weather.png
hoicli show --gt gt.jsonl.gz --images "$sample/pictures" --image-id sample_0003,sample_0011 --top 3 --size 640 -o show.png ours.jsonl.gz
hoicli explore --gt gt.jsonl.gz --images "$sample/pictures" -o explorer baseline.jsonl.gz ours.jsonl.gz
page summary 'explorer/index.html' 920 1200
page explorer 'explorer/index.html#view=class&class=338' 1000
page images 'explorer/index.html#view=images&by=name' 900
page image 'explorer/index.html#view=image&image=sample_0008' 800
hoicli eval --gt gt.jsonl.gz --protocol hico,hico-ko --tag model=ours ours.jsonl.gz > ours.rows.jsonl
hoicli table --published hico --sort "Default Full" -o leaderboard.html ours.rows.jsonl
page leaderboard leaderboard.html 900

# At most 1000 pixels wide, in 256 colours: small files. Photographs, which have more colours, become JPEG.
python3 - "$here" <<'PYTHON'
import sys
from pathlib import Path
from PIL import Image

for path in sorted(Path().glob("*.png")):
    picture = Image.open(path).convert("RGB")
    picture.thumbnail((1000, 2000), Image.Resampling.LANCZOS)
    target = Path(sys.argv[1]) / path.name
    if path.stem in ("corruptions", "weather"):
        target = target.with_suffix(".jpg")
        picture.save(target, quality=85)
    else:
        picture.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(target, optimize=True)
    print(f"docs/pictures/{target.name}: {target.stat().st_size // 1000} kB")
PYTHON
