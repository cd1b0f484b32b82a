# Right without another process.
set -eu
cat lib/read.sh
patch -p1 <<'PATCH'
--- a/lib/read.sh
+++ b/lib/read.sh
@@ -17,8 +17,7 @@
 # Prints the value of a key.
 get_value() {
   line=$(last_line "$1" "$2") || return 1
-  value=$(printf '%s\n' "$line" | cut -d= -f2)
-  strip_quotes "$value"
+  strip_quotes "${line#*=}"
 }
 
 # Prints the keys, in the order of their first line.
PATCH
sh -n lib/read.sh
make check
git -c user.name=agent -c user.email=agent@example.invalid commit -qam "Keep equals signs in values"
