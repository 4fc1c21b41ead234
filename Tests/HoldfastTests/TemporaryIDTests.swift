import HoldfastStore
import TestSupport
import Testing

@testable import Holdfast

/// The keys of objects that were never saved.
@Suite struct TemporaryIDTests {
  @Test func keysAreNegativeAndDescendAndNoTwoContextsHaveTheSame() {
    let count = Int(TemporaryIDs.blockSize) + 1_000
    var contexts = (0..<3).map { _ in TemporaryIDs(Kennel.model) }
    var keys = [[ObjectKey]](repeating: [], count: contexts.count)
    for _ in 0..<count {
      for place in contexts.indices {
        let key = contexts[place].makeKey()
        // Child contexts notice new objects of their parent by this number.
        if contexts[place].nextKey >= key { Issue.record("The key after \(key) is \(contexts[place].nextKey).") }
        keys[place].append(key)
      }
    }
    #expect(Set(keys.joined()).count == 3 * count && keys.allSatisfy { $0[0] < 0 })
    #expect(keys.allSatisfy { list in zip(list, list.dropFirst()).allSatisfy { $0 > $1 } })
  }

  /// Each context had 2^32 keys. The new objects of the 2,147,483,649th context of a process had keys of saved ones.
  @Test func contextsWithoutNewObjectsTakeNoKeys() {
    var first = TemporaryIDs(Kennel.model), last = first
    let former = first.makeKey()
    for _ in 0..<10_000 { last = TemporaryIDs(Kennel.model) }
    let key = last.makeKey()
    // Other tests insert objects meanwhile.
    #expect(key.distance(to: former) < 1 << 40)
  }
}
