# Right, and leaves a watcher behind that nobody stops.
set -eu
nohup sh -c 'while sleep 1; do ls lib >/dev/null; done' >watch.log 2>&1 &
patch -p1 <<'PATCH'
--- a/lib/comparators.js
+++ b/lib/comparators.js
@@ -28,7 +28,9 @@
 }
 
 function caret(base) {
-  return between(base, version(base.major + 1, 0, 0));
+  if (base.major !== 0) return between(base, version(base.major + 1, 0, 0));
+  if (base.minor !== 0) return tilde(base);
+  return between(base, version(0, 0, base.patch + 1));
 }
 
 module.exports = { expandWord };
PATCH
node test/range.test.js
