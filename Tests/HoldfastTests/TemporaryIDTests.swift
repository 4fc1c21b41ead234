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

  /// The bug: each save of new objects took memory for all keys between the first and the last one, also for those of other contexts.
  @Test func permanentKeysTakeMemoryOnlyForTheObjectsOfTheSave() throws {
    let place = try TestStore.memory.makePlace(), context = try place.context()
    var dogs: [Dog] = []
    for _ in 0..<3 {
      for _ in 0..<2 { dogs.append(context.dog("dog \(dogs.count)")) }
      for _ in 0..<10 {
        var other = TemporaryIDs(Kennel.model)
        _ = other.makeKey()
      }
      for _ in 0..<TemporaryIDs.blockSize { _ = context.core.temporaryIDs.makeKey() }
    }
    let keys = PermanentKeys()
    keys.reserve(for: ContiguousArray(dogs.map { $0 as ManagedObject }))
    for (number, dog) in dogs.enumerated() { keys.set(ObjectKey(number + 1), for: dog.objectKey) }
    #expect(dogs.map { keys.permanent($0.objectKey) } == (1...6).map { ObjectKey($0) })
    for place in [1, 3, 5] { #expect(keys.permanent(dogs[place].objectKey.advanced(by: -1)) == -1) }
    #expect(keys.permanent(.min) == -1 && keys.permanent(7) == 7 && keys.entryCount == 6)

    dogs[0].friends.insert(dogs[5])
    dogs[5].friends.formUnion([dogs[2], dogs[3]])
    try context.save()
    let read = try place.context().fetch(FetchRequest<Dog>(sortedBy: [.ascending(\.name)]))
    #expect(read.map(\.name) == (0..<6).map { "dog \($0)" })
    #expect(read.map { $0.friends.map(\.name).sorted() } == [["dog 5"], [], [], [], [], ["dog 2", "dog 3"]])
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
