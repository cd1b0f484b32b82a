# Wrong: mends the reader, while the entry was already lost in _purge.
set -eu
python3 -B -m unittest tests.test_expiry || true
grep -n "def get" -A 10 expiring_cache/cache.py
sed -i 's/            if entry is None:/            if entry is None or entry.deadline_s <= self._clock.now():/' expiring_cache/cache.py
git diff --stat
python3 -B -m unittest tests.test_expiry
