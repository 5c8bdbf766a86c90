"""Set cover: sets (columns) so that each element (row) is in one of those chosen, at the least cost.

`down, rows` are the elements of each set, `along, sets` the sets of each element, both as CSR and in order. Local
search with weights on the elements (Gao, Weise & Li 2015): take the set out that is missed least, put in the best one
for some element that is not covered, and let elements that stay uncovered weigh more. With a set chosen, `gain` is what
it alone covers; else what it would cover.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import inlined, kernel


@inlined()
def random(state, most):
    """A whole number below `most`, of a generator whose state this is (xorshift)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return np.int64((x >> np.uint64(11)) % np.uint64(most))


@inlined()
def put_in(c, down, rows, along, sets, times, only, weight, gain, free, bare, place, left):
    """Choose set c; how many elements are then not covered, of `left`, and the work that it took."""
    work = 0
    for t in range(down[c], down[c + 1]):
        r = rows[t]
        times[r] += 1
        only[r] += c
        if times[r] == 1:
            left -= 1
            last = bare[left]
            bare[place[r]], place[last] = last, place[r]
            for s in range(along[r], along[r + 1]):
                if sets[s] != c:
                    gain[sets[s]] -= weight[r]
                    free[sets[s]] = True
            work += along[r + 1] - along[r]
        elif times[r] == 2:
            gain[only[r] - c] -= weight[r]
    return left, work + down[c + 1] - down[c]


@inlined()
def take_out(c, down, rows, along, sets, times, only, weight, gain, free, bare, place, left):
    """Choose set c no more; as `put_in`."""
    work = 0
    for t in range(down[c], down[c + 1]):
        r = rows[t]
        times[r] -= 1
        only[r] -= c
        if times[r] == 0:
            bare[left], place[r] = r, left
            left += 1
            for s in range(along[r], along[r + 1]):
                if sets[s] != c:
                    gain[sets[s]] += weight[r]
                    free[sets[s]] = True
            work += along[r + 1] - along[r]
        elif times[r] == 1:
            gain[only[r]] += weight[r]
    free[c] = False
    return left, work + down[c + 1] - down[c]


@inlined()
def least_missed(chosen, size, gain, cost, when, tabu):
    """The place of the chosen set whose loss is the least for what it costs, the oldest of equal ones."""
    best, least = -1, np.inf
    for i in range(size):
        c = chosen[i]
        if c == tabu:
            continue
        loss = gain[c] / cost[c]
        if loss < least or (loss == least and when[c] < when[chosen[best]]):
            best, least = i, loss
    return best


@inlined()
def most_wanted(r, along, sets, gain, cost, when, free):
    """The set of element r that covers most for what it costs, the oldest of equal ones."""
    best, most = -1, -1.0
    for s in range(along[r], along[r + 1]):
        c = sets[s]
        if not free[c]:
            continue
        now = gain[c] / cost[c]
        if now > most or (now == most and when[c] < when[best]):
            best, most = c, now
    return best


@kernel()
def greedy(down, rows, along, sets, cost):
    """Choose the set that covers most for what it costs, again and again."""
    K, m = len(down) - 1, len(along) - 1
    gain, done, out = np.empty(K), np.zeros(m, np.bool_), np.zeros(K, np.bool_)
    for c in range(K):
        gain[c] = down[c + 1] - down[c]
    left = m
    while left:
        best = int(np.argmax(gain / cost))
        if gain[best] <= 0:
            break
        out[best] = True
        for t in range(down[best], down[best + 1]):
            r = rows[t]
            if not done[r]:
                done[r] = True
                left -= 1
                for s in range(along[r], along[r + 1]):
                    gain[sets[s]] -= 1
    return out


@kernel()
def search(down, rows, along, sets, cost, first, weight, state, work):
    """The cheapest cover that local search from the cover `first` meets, until so much work is done.

    Changes `weight`, those of the elements, and `state`, that of the generator.
    """
    K, m = len(down) - 1, len(along) - 1
    times, only = np.zeros(m, np.int64), np.zeros(m, np.int64)
    gain, when, free = np.zeros(K), np.zeros(K, np.int64), np.ones(K, np.bool_)
    bare, place, left = np.arange(m), np.arange(m), m
    chosen, size, total = np.empty(K, np.int64), 0, 0.0
    for r in range(m):
        for s in range(along[r], along[r + 1]):
            gain[sets[s]] += weight[r]
    for c in range(K):
        if first[c]:
            left, _ = put_in(c, down, rows, along, sets, times, only, weight, gain, free, bare, place, left)
            chosen[size] = c
            size, total = size + 1, total + cost[c]
    best, least, step, tabu = first.copy(), np.inf, 0, -1
    while work > 0 and size > 0:
        step += 1
        if left == 0:
            if total < least - 1e-9:
                least = total
                best[:] = False
                for i in range(size):
                    best[chosen[i]] = True
            tabu = -1
        i = least_missed(chosen, size, gain, cost, when, tabu)
        if i < 0:
            break
        c = chosen[i]
        size, total = size - 1, total - cost[c]
        chosen[i], when[c] = chosen[size], step
        left, more = take_out(c, down, rows, along, sets, times, only, weight, gain, free, bare, place, left)
        work -= more + size
        if left == 0 or total >= least - 1e-9:
            continue
        r = bare[random(state, left)]
        c = most_wanted(r, along, sets, gain, cost, when, free)
        work -= along[r + 1] - along[r]
        if c >= 0 and total + cost[c] < least - 1e-9:
            left, more = put_in(c, down, rows, along, sets, times, only, weight, gain, free, bare, place, left)
            chosen[size], when[c], tabu = c, step, c
            size, total = size + 1, total + cost[c]
            work -= more
        for t in range(left):
            r = bare[t]
            weight[r] += 1
            for s in range(along[r], along[r + 1]):
                gain[sets[s]] += 1
            work -= along[r + 1] - along[r]
    return best


@inlined()
def holds(pointer, items, j, item):
    """Whether sorted list j has an item."""
    low, high = pointer[j], pointer[j + 1]
    while low < high:
        middle = (low + high) >> 1
        if items[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low < pointer[j + 1] and items[low] == item


@inlined()
def contains(pointer, items, big, small):
    """Whether list `big` has all items of list `small`."""
    for t in range(pointer[small], pointer[small + 1]):  # noqa: SIM110  which compiles to no loop
        if not holds(pointer, items, big, items[t]):
            return False
    return True


@kernel()
def contained(pointer, items, back, lists, cost, supersets, work):
    """Which lists are needless beside another: those that contain one, or those that one contains at no higher cost.

    `back, lists` are the lists of each item. Of equal lists (of equal cost) the first stays. It ends when so much work
    is done: what was found until then is right.
    """
    n = len(pointer) - 1
    gone = np.zeros(n, np.bool_)
    for i in range(n):
        long = pointer[i + 1] - pointer[i]
        if gone[i] or long == 0:
            continue
        rarest = items[pointer[i]]
        for t in range(pointer[i], pointer[i + 1]):
            if back[items[t] + 1] - back[items[t]] < back[rarest + 1] - back[rarest]:
                rarest = items[t]
        for s in range(back[rarest], back[rarest + 1]):
            j = lists[s]
            other = pointer[j + 1] - pointer[j]
            if j == i or gone[j] or other < long or (not supersets and cost[j] > cost[i]):
                continue
            work -= 8
            if not contains(pointer, items, j, i):
                continue
            if supersets:
                gone[j] = True
            elif other > long or cost[j] < cost[i] or j < i:
                gone[i] = True
                break
        if work < 0:
            break
    return gone
