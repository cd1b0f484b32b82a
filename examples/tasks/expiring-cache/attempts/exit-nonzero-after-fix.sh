# Right, although the attempt itself ends with 3: only the test command decides.
set -u
python3 -B -m unittest tests.test_expiry
python3 - <<'PYTHON'
from pathlib import Path

path = Path("expiring_cache/cache.py")
head, _, _ = path.read_text().partition("    def _purge(self):")
path.write_text(
    head
    + '''    def _purge(self):
        """Removes what is over. The caller holds the lock."""
        now_s = self._clock.now()
        for key in [k for k, entry in self._entries.items() if entry.deadline_s <= now_s]:
            del self._entries[key]
            self.stats.expired += 1
        self._deadlines.clear()
'''
)
PYTHON
git diff
exit 3
