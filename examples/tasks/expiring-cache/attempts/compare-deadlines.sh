# Right: an old deadline of a key that was put again is skipped.
set -eu
ls
git log --oneline
cat README.md
python3 -B -m unittest discover -s tests -t . || true
grep -n "deadline" expiring_cache/cache.py
patch -p1 <<'PATCH'
--- a/expiring_cache/cache.py
+++ b/expiring_cache/cache.py
@@ -90,6 +90,8 @@
         """Removes what is over. The caller holds the lock."""
         now_s = self._clock.now()
         while self._deadlines and self._deadlines[0][0] <= now_s:
-            _, _, key = heapq.heappop(self._deadlines)
-            if self._entries.pop(key, None) is not None:
+            deadline_s, _, key = heapq.heappop(self._deadlines)
+            entry = self._entries.get(key)
+            if entry is not None and entry.deadline_s == deadline_s:
+                del self._entries[key]
                 self.stats.expired += 1
PATCH
git diff --stat
python3 -B -m unittest discover -s tests -t .
