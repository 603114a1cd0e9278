// SPDX-License-Identifier: Apache-2.0

package symbol

// A cache is a map that holds at most limit entries, in two generations: a full
// young one becomes the old one, and what is asked for again moves back.
// It forgets what was not used for a generation without any list to keep in order, which
// makes a hit one map access.
type cache[K comparable, V any] struct {
	limit      int
	young, old map[K]V
	evicted    uint64
}

func newCache[K comparable, V any](limit int) *cache[K, V] {
	return &cache[K, V]{limit: max(limit, 2), young: map[K]V{}}
}

func (c *cache[K, V]) get(k K) (V, bool) {
	if v, ok := c.young[k]; ok {
		return v, true
	}
	v, ok := c.old[k]
	if ok {
		delete(c.old, k)
		c.put(k, v)
	}
	return v, ok
}

func (c *cache[K, V]) put(k K, v V) {
	if len(c.young) >= c.limit/2 {
		c.evicted += uint64(len(c.old))
		c.old, c.young = c.young, make(map[K]V)
	}
	c.young[k] = v
}

func (c *cache[K, V]) len() int { return len(c.young) + len(c.old) }
