#include "utf8.h"

bool utf8_valid(const unsigned char *bytes, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t used;
        if (utf8_decode(bytes + at, length - at, &used) == UTF8_INVALID)
            return false;
        at += used;
    }
    return true;
}

size_t utf8_count(const unsigned char *bytes, size_t length)
{
    size_t at = 0;
    size_t count = 0;
    while (at < length) {
        size_t used;
        utf8_decode(bytes + at, length - at, &used);
        at += used;
        count++;
    }
    return count;
}
