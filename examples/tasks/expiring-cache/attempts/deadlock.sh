# Wrong: _purge calls delete(), which waits for the lock that the caller of _purge holds.
set -eu
sed -i 's/            if self._entries.pop(key, None) is not None:/            if self.delete(key):/' expiring_cache/cache.py
git diff
timeout 1 python3 -B -m unittest tests.test_expiry || echo "the tests take long today"
