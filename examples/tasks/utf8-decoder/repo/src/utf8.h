#ifndef UTF8_H
#define UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_INVALID (-1)
#define UTF8_LENGTH_MAX 4

/* Decodes the first code point of `bytes`. `used` is set to the number of bytes
 * read: 1 to 4, or 1 after an error, so that a caller can go on behind it. */
int32_t utf8_decode(const unsigned char *bytes, size_t length, size_t *used);

/* Writes a code point to `out` (room for 4 bytes). Returns the number of bytes,
 * or 0 if the code point has no encoding. */
size_t utf8_encode(int32_t point, unsigned char *out);

/* True if all of `bytes` is well formed. */
bool utf8_valid(const unsigned char *bytes, size_t length);

/* Number of code points, where each bad byte counts as one. */
size_t utf8_count(const unsigned char *bytes, size_t length);

#endif
