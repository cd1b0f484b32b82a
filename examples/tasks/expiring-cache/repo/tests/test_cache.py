import unittest

from expiring_cache import ExpiringCache, ManualClock


class UseTest(unittest.TestCase):
    def setUp(self):
        self.cache = ExpiringCache(capacity=2, ttl_s=10, clock=ManualClock())

    def test_returns_what_was_put(self):
        self.cache.put("a", 1)
        self.assertEqual(self.cache.get("a"), 1)

    def test_returns_the_default_for_a_missing_key(self):
        self.assertEqual(self.cache.get("a", "none"), "none")

    def test_evicts_the_least_recently_used(self):
        self.cache.put("a", 1)
        self.cache.put("b", 2)
        self.cache.get("a")
        self.cache.put("c", 3)
        self.assertEqual(self.cache.keys(), ["a", "c"])
        self.assertEqual(self.cache.stats.evicted, 1)

    def test_delete_says_whether_there_was_an_entry(self):
        self.cache.put("a", 1)
        self.assertTrue(self.cache.delete("a"))
        self.assertFalse(self.cache.delete("a"))

    def test_counts_hits_and_misses(self):
        self.cache.put("a", 1)
        self.cache.get("a")
        self.cache.get("b")
        self.assertEqual(self.cache.stats.hit_rate, 0.5)

    def test_refuses_senseless_settings(self):
        with self.assertRaises(ValueError):
            ExpiringCache(capacity=0, ttl_s=1)
        with self.assertRaises(ValueError):
            ExpiringCache(capacity=1, ttl_s=0)


if __name__ == "__main__":
    unittest.main()
