import unittest

from expiring_cache import ExpiringCache, ManualClock


class ExpiryTest(unittest.TestCase):
    def setUp(self):
        self.clock = ManualClock()
        self.cache = ExpiringCache(capacity=3, ttl_s=10, clock=self.clock)

    def test_forgets_at_the_deadline(self):
        self.cache.put("a", 1)
        self.clock.advance(9.5)
        self.assertIn("a", self.cache)
        self.clock.advance(0.5)
        self.assertNotIn("a", self.cache)
        self.assertEqual(self.cache.stats.expired, 1)

    def test_own_time_to_live(self):
        self.cache.put("short", 1, ttl_s=1)
        self.cache.put("long", 2, ttl_s=100)
        self.clock.advance(50)
        self.assertEqual(self.cache.keys(), ["long"])

    def test_put_again_starts_a_new_time_to_live(self):
        self.cache.put("a", 1)
        self.clock.advance(6)
        self.cache.put("a", 2)
        self.clock.advance(6)
        self.assertEqual(self.cache.get("a"), 2)
        self.clock.advance(4)
        self.assertIsNone(self.cache.get("a"))

    def test_a_shorter_time_to_live_replaces_a_longer_one(self):
        self.cache.put("a", 1, ttl_s=100)
        self.cache.put("a", 2, ttl_s=5)
        self.clock.advance(5)
        self.assertIsNone(self.cache.get("a"))
        self.cache.put("a", 3, ttl_s=200)
        self.clock.advance(150)
        self.assertEqual(self.cache.get("a"), 3)
        self.assertEqual(self.cache.stats.expired, 1)

    def test_delete_and_put_again(self):
        self.cache.put("a", 1)
        self.clock.advance(5)
        self.cache.delete("a")
        self.cache.put("a", 2)
        self.clock.advance(7)
        self.assertEqual(self.cache.get("a"), 2)


if __name__ == "__main__":
    unittest.main()
