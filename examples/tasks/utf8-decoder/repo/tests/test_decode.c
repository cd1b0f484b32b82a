#include "check.h"
#include "utf8.h"

#define DECODE(text) decode((const unsigned char *)(text), sizeof(text) - 1)

static size_t used;

static int32_t decode(const unsigned char *bytes, size_t length)
{
    return utf8_decode(bytes, length, &used);
}

static void test_well_formed(void)
{
    CHECK(DECODE("A") == 'A' && used == 1);
    CHECK(DECODE("\xC3\xA9") == 0xE9 && used == 2);
    CHECK(DECODE("\xE2\x82\xAC") == 0x20AC && used == 3);
    CHECK(DECODE("\xF0\x9F\x98\x80") == 0x1F600 && used == 4);
    CHECK(DECODE("\xF4\x8F\xBF\xBF") == 0x10FFFF && used == 4);
}

static void test_malformed(void)
{
    CHECK(DECODE("") == UTF8_INVALID);
    CHECK(DECODE("\x80") == UTF8_INVALID && used == 1);
    CHECK(DECODE("\xC3") == UTF8_INVALID && used == 1);
    CHECK(DECODE("\xE2\x28\xA1") == UTF8_INVALID && used == 1);
    CHECK(DECODE("\xFF") == UTF8_INVALID && used == 1);
    CHECK(DECODE("\xED\xA0\x80") == UTF8_INVALID);
    CHECK(DECODE("\xF4\x90\x80\x80") == UTF8_INVALID);
}

static void test_overlong(void)
{
    CHECK(DECODE("\xC0\x80") == UTF8_INVALID);
    CHECK(DECODE("\xC1\xBF") == UTF8_INVALID && used == 1);
    CHECK(DECODE("\xE0\x80\xAF") == UTF8_INVALID);
    CHECK(DECODE("\xE0\x9F\xBF") == UTF8_INVALID && used == 1);
    CHECK(DECODE("\xF0\x80\x80\xAF") == UTF8_INVALID);
    CHECK(DECODE("\xF0\x8F\xBF\xBF") == UTF8_INVALID && used == 1);
    CHECK(DECODE("\xC2\x80") == 0x80 && used == 2);
    CHECK(DECODE("\xE0\xA0\x80") == 0x800 && used == 3);
    CHECK(DECODE("\xF0\x90\x80\x80") == 0x10000 && used == 4);
}

int main(void)
{
    test_well_formed();
    test_malformed();
    test_overlong();
    return FAILURES() != 0;
}
