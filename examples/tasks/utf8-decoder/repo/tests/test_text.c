#include <string.h>

#include "check.h"
#include "utf8.h"

static void test_round_trip(void)
{
    for (int32_t point = 0; point <= 0x10FFFF; point += 37) {
        unsigned char bytes[UTF8_LENGTH_MAX];
        size_t length = utf8_encode(point, bytes);
        if (point >= 0xD800 && point <= 0xDFFF) {
            CHECK(length == 0);
            continue;
        }
        size_t used;
        CHECK(utf8_decode(bytes, length, &used) == point && used == length);
    }
}

static void test_count(void)
{
    const char *text = "na\xC3\xAFve \xE2\x82\xAC";
    CHECK(utf8_count((const unsigned char *)text, strlen(text)) == 7);
    CHECK(utf8_count((const unsigned char *)"a\xFFz", 3) == 3);
}

static void test_valid(void)
{
    CHECK(utf8_valid((const unsigned char *)"plain", 5));
    CHECK(!utf8_valid((const unsigned char *)"cut \xE2\x82", 6));
}

int main(void)
{
    test_round_trip();
    test_count();
    test_valid();
    return FAILURES() != 0;
}
