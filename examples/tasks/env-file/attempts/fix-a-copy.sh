# Wrong: works in a copy, is content with its tests, and forgets to bring the change back.
set -eu
copy=$(mktemp -d)
cp -R . "$copy"
cd "$copy"
sed -i 's/cut -d= -f2)/cut -d= -f2-)/' lib/read.sh
make check
rm -rf "$copy"
