# Wrong: the right change ends in the stash, not in the working copy.
set -eu
python3 - <<'PYTHON'
from pathlib import Path

path = Path("expiring_cache/cache.py")
path.write_text(
    path.read_text().replace(
        "            if self._entries.pop(key, None) is not None:\n",
        "            if key in self._entries and self._entries[key].deadline_s <= now_s:\n"
        "                del self._entries[key]\n",
    )
)
PYTHON
python3 -B -m unittest tests.test_expiry
git -c user.name=agent -c user.email=agent@example.invalid stash
git status --short
