# Right, slower: the heap is made anew without the key that is put or deleted. Ends with a commit.
set -eu
git log -1 --format='%an %s'
cat expiring_cache/cache.py
python3 - <<'PYTHON'
from pathlib import Path

path = Path("expiring_cache/cache.py")
text = path.read_text()
push = "            heapq.heappush(self._deadlines, (deadline_s, self._serial, key))\n"
text = text.replace(push, "            self._drop_deadline(key)\n" + push)
text = text.replace(
    "            return self._entries.pop(key, None) is not None\n",
    "            self._drop_deadline(key)\n            return self._entries.pop(key, None) is not None\n",
)
text += '''
    def _drop_deadline(self, key):
        """Forgets an earlier deadline of this key. The caller holds the lock."""
        self._deadlines = [item for item in self._deadlines if item[2] != key]
        heapq.heapify(self._deadlines)
'''
path.write_text(text)
PYTHON
python3 -B -m unittest tests.test_expiry
git -c user.name=agent -c user.email=agent@example.invalid commit -qam "Drop the old deadline when a key is put again"
git status --short
